"""The node: composes the rooms into one object with few methods.

In: `connected`, `client_bytes`, `disconnected` for clients, `link_bytes` and `link_closed` for the cluster bus, `found`
for host names that were resolved, `disk_done` for the disk, and `tick`. Out: `carry`, which hands the output of a turn
to a driver, and `next_deadline_ms`. The node takes bytes and the time and never touches a socket or a clock, so the
server and the simulator are two small drivers of the same calls.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.config import Config, rename_commands
from disqued.core.access.users import Users
from disqued.core.clients.blocked import WaitForJob
from disqued.core.clients.session import Session
from disqued.core.cluster.peer import Link
from disqued.core.commands.command import Command
from disqued.core.commands.entry import CommandEntry
from disqued.core.host.disk import DiskWork
from disqued.core.host.host import Host
from disqued.core.jobs.job import Job
from disqued.core.memory.accounting import CLIENT_BYTES
from disqued.core.output.ready import Driver, Ready
from disqued.core.runtime.audit import Audited
from disqued.core.runtime.authentication import is_served, leave, welcome
from disqued.core.runtime.clientlimits import ClientLimits
from disqued.core.runtime.counters import CONNECTIONS, JOBS_EXPIRED, RECORDS_EXPIRED, REJECTED_CONNECTIONS
from disqued.core.runtime.failures import report_bug
from disqued.core.runtime.flush import free_dropped
from disqued.core.runtime.memorymonitor import IdleQueues, MemoryMonitor
from disqued.core.runtime.outbox import send_gathered
from disqued.core.runtime.shutdown import end, end_controlled
from disqued.core.runtime.slices import continue_long, next_long
from disqued.core.runtime.state import NodeState
from disqued.core.runtime.waiting import abandon
from disqued.core.timers.alarm import Alarm
from disqued.core.timers.timed import DUE, Timed
from disqued.errors import Protected, ReplyError
from disqued.membership.leave import leave_to_end
from disqued.node.frames import Frames
from disqued.node.requests import Requests
from disqued.node.rooms import ROOMS, Rooms

WAKE_UPS_PER_TICK: Final = 2000
SAMPLE_MS: Final = 100


class Node:
    """One broker node, which consists of `rooms`."""

    def __init__(
        self,
        config: Config,
        host: Host,
        node_id: bytes,
        now_ms: i64,
        rooms: Rooms = ROOMS,
    ) -> None:
        users = Users(rooms.catalogue)
        state = NodeState(config, host, node_id, now_ms, rooms.message_table, rooms.features, users)
        self.state = state
        self.rooms = rooms
        self.ready: Ready = state.ready
        self._limits = ClientLimits(state)
        self._requests = Requests(state, self._limits, host.stopwatch_ns)
        self._idle_queues = IdleQueues()
        self._memory_monitor = MemoryMonitor(self._limits)
        self._next_cron_ms: i64 = now_ms
        self._next_sample_ms: i64 = now_ms
        for subsystem in rooms.subsystems:
            room = subsystem.room(state)
            state.rooms[subsystem.name] = room
            state.events.add(room)
        state.info_sections = [
            (subsystem.name.title(), subsystem.section)
            for subsystem in rooms.subsystems
            if subsystem.info is not None or subsystem.counters
        ]
        self.frames = Frames(state, self._limits, rooms.messages)
        journal = state.lifecycle.journal
        journal.formats = rooms.record_table
        journal.kinds = {kind.name.encode(): kind.on(state) for kind in rooms.records}
        self._make_command_table(rooms.commands)

    def _make_command_table(self, commands: tuple[Command, ...]) -> None:
        """Register the commands under their names, as renamed by the configuration."""
        state = self.state
        state.command_entries = [CommandEntry(command) for command in commands]
        entries = {entry.command.name: entry for entry in state.command_entries}
        assert len(entries) == len(state.command_entries), "two commands have one name"
        for entry in state.command_entries:
            if entry.audited:
                entry.handler = Audited(entry.command).run
        names = rename_commands([entry.name for entry in state.command_entries], state.config.rename_command)
        for name, original in names.items():
            entry = entries[original.decode()]
            state.commands[name] = entry
            state.commands[name.upper()] = entry

    def start(self, now_ms: i64) -> None:
        """Start to load the jobs on disk, before anything else happens."""
        self.state.now_ms = now_ms
        self.state.events.start()

    def carry(self, driver: Driver) -> bool:
        """End a turn: log what changed, then have the driver write what may leave, in the order of `output.ready`.

        Jobs that other nodes asked for leave now, so that those of one turn leave together. The time of the changes is
        that of the last input. Returns whether more output came up meanwhile, which needs another call.
        """
        state = self.state
        ready = state.ready
        if state.lifecycle.wanted and not state.ending and not state.ended:
            state.events.queues_wanted()
        if ready.turn_work:
            state.events.turn_ends()
        if ready.gathering:
            send_gathered(state, everything=state.ended)
        if ready.changes:
            state.events.log_changes()
        ready.carry(driver)
        state.lifecycle.memory.under_way_bytes = 0
        return ready.pending

    def end(self, now_ms: i64) -> bool:
        """End the node, as SHUTDOWN does; False if that fails and the node continues."""
        self.state.now_ms = now_ms
        return end(self.state)

    def leave_to_end(self, now_ms: i64) -> None:
        """Begin to transfer all jobs, because the process ends."""
        self.state.now_ms = now_ms
        leave_to_end(self.state)

    def flush_audit(self) -> None:
        """Write the records of the audit log that wait, and wait for that: the process ends."""
        self.state.audit.flush()

    def end_controlled(self, session: Session, now_ms: i64) -> None:
        """Begin to end the node as SHUTDOWN REWRITE-AOF does, for a session that gets the reply if that fails."""
        state = self.state
        state.now_ms = now_ms
        try:
            end_controlled(state, session)
        except ReplyError as error:
            session.out.append(error.encode())
            state.ready.flush(session)

    # --- clients ------------------------------------------------------------------------------------------------------

    def connected(self, session: Session) -> bool:
        """A client opened a connection; False if the session only gets an error."""
        state = self.state
        if len(state.sessions) >= state.config.maxclients:
            return self._reject(session, b"-ERR max number of clients reached\r\n")
        if not is_served(state, session):
            return self._reject(session, Protected().encode())
        state.counters.add(CONNECTIONS)
        state.sessions_made += 1
        session.number = state.sessions_made
        welcome(state, session)
        if session.user is None:
            self._limits.bound_unauthenticated(session)
        state.sessions[session.number] = session
        state.lifecycle.memory.used_bytes += CLIENT_BYTES
        return True

    def _reject(self, session: Session, reply: bytes) -> bool:
        """Close a new connection with an error; False."""
        state = self.state
        state.counters.add(REJECTED_CONNECTIONS)
        session.out.append(reply)
        session.closing = True
        state.ready.flush(session)
        return False

    def disconnected(self, session: Session, now_ms: i64) -> None:
        """A client's connection is closed."""
        state = self.state
        state.now_ms = now_ms
        session.closed = True
        if state.sessions.pop(session.number, None) is None:
            return
        state.unauthenticated.pop(session.number, None)
        memory = state.lifecycle.memory
        memory.used_bytes -= CLIENT_BYTES
        memory.input_bytes -= session.input_bytes
        session.input_bytes = 0
        state.ready.slow.pop(session.number, None)
        leave(session)
        abandon(state, session)
        if session.consumes:
            state.events.consumer_gone(session)
        if session.monitor:
            state.monitoring.sessions.remove(session)
        session.forget_output()

    def client_bytes(self, session: Session, data: bytes, now_ms: i64, arrived_ns: i64) -> None:
        """A client sent bytes: run the complete requests among them. `arrived_ns` is what the stopwatch read then."""
        state = self.state
        state.now_ms = now_ms
        state.throughput.input_bytes.value += len(data)
        session.active_ms = now_ms
        if session.closing or session.closed or state.ended:
            return
        parser = session.parser
        parser.feed(data)
        if session.may_run():
            self._requests.run(session, arrived_ns)
            if state.resumed:
                self._requests.resume()
        if parser.held_bytes != session.input_bytes:
            self._requests.count_input(session)

    # --- other nodes --------------------------------------------------------------------------------------------------

    def link_bytes(self, link: Link, data: bytes, now_ms: i64) -> None:
        """Bytes arrived on a link: handle the complete frames among them."""
        state = self.state
        state.now_ms = now_ms
        if link.closed or state.ended:
            return
        self.frames.take(link, data)
        self._serve_queues()
        if state.resumed:
            self._requests.resume()

    def link_closed(self, link: Link, now_ms: i64) -> None:
        """A link is closed, or could not be opened."""
        self.state.now_ms = now_ms
        link.closed = True
        link.out.clear()
        peer = link.peer
        if peer is not None and peer.link is link:
            peer.link = None

    def found(self, name: bytes, addresses: list[bytes], now_ms: i64) -> None:
        """A host name was resolved to literal addresses, none if it has none."""
        self.state.now_ms = now_ms
        self.state.events.name_found(name, addresses)

    def files_changed(self, now_ms: i64) -> None:
        """Files that directives name may have changed: rooms read them again."""
        self.state.now_ms = now_ms
        self.state.events.files_changed()

    # --- the disk and the time ----------------------------------------------------------------------------------------

    def disk_done(self, work: DiskWork, now_ms: i64) -> None:
        """The disk finished work that was started before."""
        self.state.now_ms = now_ms
        owner = work.owner
        if owner is not None:
            owner.disk_done(work)

    def tick(self, now_ms: i64) -> None:
        """Do what is due: wake jobs, end waits, and run the cron."""
        state = self.state
        state.now_ms = now_ms
        if state.ended:
            return
        if self._requests.interrupted:
            self._requests.continue_interrupted()
        if state.loading or state.ending:  # timers and the cron wait, because nothing may change
            state.events.due()
            continue_long(state)
            free_dropped(state)
            if state.resumed:
                self._requests.resume()
            return
        for timed in state.lifecycle.timers.due(now_ms, WAKE_UPS_PER_TICK):
            if timed.awake_ms == DUE:
                timed.awake_ms = 0
                try:
                    self._wake(timed)
                except Exception as bug:  # noqa: BLE001 - all other timers must still fire
                    report_bug(state, "a timer could not be handled", bug)
        if 0 < state.events.deadline_ms() <= now_ms:
            state.events.due()
        self._serve_queues()
        if state.client_pause.held and state.client_pause.until_ms <= now_ms:
            state.resumed.extend(state.client_pause.release())
        if now_ms >= self._next_cron_ms:
            self._cron(now_ms)
        if state.long_commands:
            continue_long(state)
            self._serve_queues()
        if state.lifecycle.dropped:
            free_dropped(state)
        if state.resumed:
            self._requests.resume()

    def _wake(self, timed: Timed) -> None:
        """A timer fires."""
        state = self.state
        if isinstance(timed, Job):
            if state.lifecycle.wake(timed, state.now_ms):
                state.counters.add(RECORDS_EXPIRED)
                if timed.is_unfinished:
                    state.counters.add(JOBS_EXPIRED)
        elif isinstance(timed, WaitForJob):
            state.events.wait_timed_out(timed)
        elif isinstance(timed, Alarm):
            timed.ring(state)

    def _serve_queues(self) -> None:
        """Serve the clients that wait here. Call it when queues may have jobs."""
        state = self.state
        if state.lifecycle.ready:
            state.events.queues_ready()

    def _cron(self, now_ms: i64) -> None:
        """Run the regular duties, up to `hz` times per second."""
        state = self.state
        self._next_cron_ms = now_ms + 1000 // state.config.hz
        if now_ms >= self._next_sample_ms:
            self._next_sample_ms = now_ms + SAMPLE_MS
            state.throughput.sample(now_ms)
            self._memory_monitor.check(state)
            self._idle_queues.visit(state)
            state.events.cron()
            self._serve_queues()
            send_gathered(state, everything=True)
        self._limits.close_idle()
        self._limits.close_unauthenticated()

    def next_deadline_ms(self) -> int:
        """When `tick` should be called next; 0 for as soon as other input was handled."""
        state = self.state
        room_ms = state.events.deadline_ms()
        at_once = next_long(state) is not None or bool(state.lifecycle.dropped) or bool(self._requests.interrupted)
        if state.loading or state.ending:
            return 0 if at_once or 0 < room_ms <= state.now_ms else state.now_ms + SAMPLE_MS
        if at_once or state.watches.has_work:  # a client waits for what is told now: a timer is a millisecond late
            return 0
        deadline = self._next_cron_ms
        awake_ms = state.lifecycle.timers.next_ms()
        if 0 < awake_ms < deadline:
            deadline = awake_ms
        if 0 < room_ms < deadline:
            deadline = room_ms
        pause = state.client_pause
        if pause.held and pause.until_ms < deadline:
            deadline = pause.until_ms
        return deadline
