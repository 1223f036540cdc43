"""The node: composes the rooms into one object with few verbs.

In: `connected`, `client_bytes`, `disconnected` for clients, `link_bytes` and `link_closed` for the cluster bus, `found`
for names that were looked up, and `tick`. Out: `ready`, the batch of things to do, and `next_deadline_ms`. It takes
bytes and the time and never touches a socket or a clock, so the asyncio shell and the simulator are two small drivers
of the same calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.acks import SUBSYSTEM as ACKS
from disqued.acks import gc
from disqued.admin import SUBSYSTEM as ADMIN
from disqued.admission import SUBSYSTEM as ADMISSION
from disqued.admission.addjob import TOO_BIG
from disqued.bus import kinds
from disqued.bus.errors import BusError
from disqued.bus.frame import MAX_FRAME_BYTES, VERSION, Frame
from disqued.config import Config, rename_commands
from disqued.core.clients.blocked import WaitForCopies, WaitForJob
from disqued.core.clients.session import REPLY_OFF, REPLY_ON, REPLY_SKIP, Session
from disqued.core.cluster.peer import Link, Peer
from disqued.core.commands.command import Command
from disqued.core.commands.entry import CommandEntry
from disqued.core.host.disk import DiskWork
from disqued.core.host.host import Host
from disqued.core.jobs.job import Job
from disqued.core.lifecycle.events import Events
from disqued.core.memory.accounting import BIG_BYTES, CLIENT_BYTES, COPIES_UNDER_WAY, EVICTION
from disqued.core.output.ready import Driver, Ready
from disqued.core.queues.queue import Queue
from disqued.core.runtime.clientlimits import hang_up_greedy, must_read, sends_too_much
from disqued.core.runtime.failures import report_bug
from disqued.core.runtime.idleclients import IdleClients
from disqued.core.runtime.memorymonitor import IdleQueues, Watch, make_room, make_room_for
from disqued.core.runtime.message import Message
from disqued.core.runtime.messageentry import MessageEntry
from disqued.core.runtime.monitoring import note_slow, show_monitors
from disqued.core.runtime.shutdown import end
from disqued.core.runtime.state import NodeState
from disqued.core.runtime.subsystem import Subsystem
from disqued.core.runtime.waiting import abandon, time_out
from disqued.core.timers.alarm import Alarm
from disqued.core.timers.timed import DUE, Timed
from disqued.delivery import SUBSYSTEM as DELIVERY
from disqued.delivery import queued, willqueue
from disqued.delivery.waiters import serve
from disqued.errors import AuthenticationRequired, Loading, OutOfMemory, ProtocolError, ReplyError, WrongArity
from disqued.federation import SUBSYSTEM as FEDERATION
from disqued.federation import handover, needs
from disqued.introspection import SUBSYSTEM as INTROSPECTION
from disqued.leaving import SUBSYSTEM as LEAVING
from disqued.leaving import handoff
from disqued.membership import SUBSYSTEM as MEMBERSHIP
from disqued.membership import seeds
from disqued.persistence import SUBSYSTEM as PERSISTENCE
from disqued.persistence.aof import Aof, aof_of
from disqued.persistence.reload import reload
from disqued.replication import SUBSYSTEM as REPLICATION
from disqued.replication import copies
from disqued.resp.limits import MAX_QUERY_BYTES

if TYPE_CHECKING:
    from disqued.core.telemetry.fields import Fields

SUBSYSTEMS: Final[tuple[Subsystem, ...]] = (
    ADMIN,
    MEMBERSHIP,
    ADMISSION,
    REPLICATION,
    DELIVERY,
    ACKS,
    FEDERATION,
    LEAVING,
    PERSISTENCE,
    INTROSPECTION,
)

COMMANDS: Final[tuple[Command, ...]] = tuple(command for room in SUBSYSTEMS for command in room.commands)
MESSAGES: Final[tuple[Message, ...]] = tuple(message for room in SUBSYSTEMS for message in room.messages)

WAKE_UPS_PER_TICK: Final = 2000
LOOK_PARTS: Final = 100
SAMPLE_MS: Final = 100


class _RoomEvents(Events):
    """Tells the rooms what happens."""

    def __init__(self, state: NodeState) -> None:
        self._state = state

    def copies_wanted(self, session: Session, job: Job, timeout_ms: i64, *, asynchronous: bool, external: bool) -> None:
        copies.replicate(self._state, session, job, timeout_ms, asynchronous=asynchronous, external=external)

    def complete(self, job: Job) -> bool:
        return copies.complete(self._state, job)

    def copy_confirmed(self, job: Job, peer: Peer) -> None:
        handoff.copy_confirmed(self._state, job, peer)

    def leaving_changed(self) -> None:
        handoff.leaving_changed(self._state)

    def leaving_status(self) -> Fields:
        return handoff.status(self._state)

    def appendonly_changed(self) -> None:
        aof_of(self._state).switch()

    def directory_changed(self) -> None:
        aof_of(self._state).move()

    def all_dropped(self) -> None:
        aof_of(self._state).drop_all()

    def reload(self) -> str:
        return reload(self._state, aof_of(self._state))

    def persistence_status(self) -> Fields:
        return aof_of(self._state).status_fields()

    def last_records(self, *, rewrite: bool) -> str:
        return aof_of(self._state).end(rewrite=rewrite)

    def passed_on(self, job_id: bytes, kind: i64, message_flags: i64) -> i64:
        return handoff.pass_on(self._state, job_id, kind, message_flags)

    def requeued(self, job: Job, counting: i64) -> None:
        queued.announce(self._state, job, counting)

    def about_to_requeue(self, job: Job) -> None:
        willqueue.announce(self._state, job)

    def acknowledged(self, job: Job) -> None:
        gc.collect(self._state, job)

    def dropped_unplaced(self, job: Job) -> None:
        copies.lost(self._state, job)

    def client_gone(self, wait: WaitForCopies) -> None:
        copies.client_gone(self._state, wait)

    def queue_empty(self, queue: Queue, *, drained: bool) -> None:
        needs.queue_empty(self._state, queue, drained=drained)

    def queue_gone(self, queue: Queue) -> None:
        needs.queue_gone(self._state, queue)
        handover.forget_all(self._state, queue)

    def peer_up(self, peer: Peer) -> None:
        gc.peers_changed(self._state)
        needs.peer_up(self._state, peer)

    def peer_forgotten(self, peer: Peer) -> None:
        gc.peers_changed(self._state)
        handover.peer_forgotten(self._state, peer)


class Node:
    """One broker node."""

    def __init__(self, config: Config, host: Host, node_id: bytes, now_ms: i64) -> None:
        self.state = NodeState(config, host, node_id, now_ms)
        self.ready: Ready = self.state.ready
        self._stopwatch_ns = host.stopwatch_ns
        self._idle_queues = IdleQueues()
        self._memory_watch = Watch()
        self._next_cron_ms: i64 = now_ms
        self._next_sample_ms: i64 = now_ms
        self._idle_clients = IdleClients()
        self.state.info_sections = [(room.name.title(), room.info) for room in SUBSYSTEMS if room.info is not None]
        self._crons = [room.cron for room in SUBSYSTEMS if room.cron is not None]
        self._messages = self._make_message_table()
        self._make_command_table()
        self.state.listen_to(_RoomEvents(self.state))
        self.aof = Aof(self.state)
        self.state.keeper = self.aof

    def _make_message_table(self) -> list[MessageEntry | None]:
        """The messages by their numbers."""
        table: list[MessageEntry | None] = [None] * kinds.KINDS
        for message in MESSAGES:
            assert table[message.kind] is None, "two messages have one number"
            table[message.kind] = MessageEntry(message, self.state.stats.bus[message.kind])
        return table

    def _make_command_table(self) -> None:
        """Enter the commands under their names, as renamed by the configuration."""
        state = self.state
        entries = {command.name: CommandEntry(command) for command in COMMANDS}
        assert len(entries) == len(COMMANDS), "two commands have one name"
        state.command_entries = list(entries.values())
        names = rename_commands([entry.name for entry in state.command_entries], state.config.rename_command)
        for name, original in names.items():
            entry = entries[original.decode()]
            state.commands[name] = entry
            state.commands[name.upper()] = entry

    def start(self, now_ms: i64) -> None:
        """Take up what was kept on disk, before anything else happens."""
        self.state.now_ms = now_ms
        self.aof.start()

    def carry(self, driver: Driver, now_ms: i64) -> bool:
        """End a turn: log what changed, then have the driver write what may leave, in the order of `output.ready`.

        Returns whether more output came up meanwhile, which needs another call.
        """
        state = self.state
        ready = state.ready
        if ready.changes:
            state.now_ms = now_ms
            self.aof.turn()
        ready.carry(driver)
        state.lifecycle.memory.under_way_bytes = 0
        return ready.pending

    def disk_done(self, work: DiskWork, now_ms: i64) -> None:
        """The disk finished something that was started before."""
        self.state.now_ms = now_ms
        self.aof.done(work)

    def end(self, now_ms: i64, *, rewrite: bool = False) -> bool:
        """The process is asked to end, as by SHUTDOWN (REWRITE-AOF); False if that fails, and the node goes on."""
        self.state.now_ms = now_ms
        return end(self.state, rewrite=rewrite)

    def connected(self, session: Session) -> bool:
        """A client opened a connection; False when there are too many and the session only gets an error."""
        state = self.state
        if len(state.sessions) >= state.config.maxclients:
            state.stats.rejected_connections += 1
            session.out.append(b"-ERR max number of clients reached\r\n")
            session.closing = True
            state.ready.flush(session)
            return False
        state.stats.connections += 1
        state.sessions_made += 1
        session.number = state.sessions_made
        session.parser.restrict(bool(state.password))
        state.sessions[session.number] = session
        state.lifecycle.memory.used_bytes += CLIENT_BYTES
        return True

    def disconnected(self, session: Session, now_ms: i64) -> None:
        """A connection is gone."""
        state = self.state
        state.now_ms = now_ms
        session.closed = True
        if state.sessions.pop(session.number, None) is None:
            return
        memory = state.lifecycle.memory
        memory.used_bytes -= CLIENT_BYTES
        memory.input_bytes -= session.input_bytes
        session.input_bytes = 0
        state.ready.slow.pop(session.number, None)
        abandon(state, session)
        if session.monitor:
            state.monitors.remove(session)
        session.forget_output()

    def client_bytes(self, session: Session, data: bytes, now_ms: i64, arrived_ns: i64) -> None:
        """A client sent bytes: run the complete requests among them. `arrived_ns` is what the stopwatch read then."""
        state = self.state
        state.now_ms = now_ms
        state.stats.input_bytes += len(data)
        session.active_ms = now_ms
        if session.closing or session.closed or state.ended:
            return
        parser = session.parser
        parser.feed(data)
        if session.blocked is None:
            self._run(session, arrived_ns)
            if state.resumed:
                self._resume()
            if state.lifecycle.wanted:
                handover.hand_over(state)
        held: i64 = parser.held_bytes
        if held != session.input_bytes:
            state.lifecycle.memory.input_bytes += held - session.input_bytes
            session.input_bytes = held
            if held > BIG_BYTES or parser.argument_bytes > BIG_BYTES:
                self._bound_input(session)

    def _bound_input(self, session: Session) -> None:
        """A client sent much that can not be run yet: see that there is memory for it, and for what is to come.

        A job that does not fit is refused before the rest of it is stored.
        """
        state, parser = self.state, session.parser
        memory = state.lifecycle.memory
        if parser.buffered_bytes > MAX_QUERY_BYTES:
            state.ready.hang_up(session)
        elif session.blocked is None and parser.argument_bytes > BIG_BYTES:
            if not make_room_for(state, parser.coming_bytes + COPIES_UNDER_WAY * parser.argument_bytes):
                parser.pass_over()
                memory.input_bytes += parser.held_bytes - session.input_bytes
                session.input_bytes = parser.held_bytes
                state.stats.requests_refused_unread += 1
        elif sends_too_much(state, session):
            hang_up_greedy(state, session, f"{session.input_bytes} bytes of requests wait to be run")

    def _refuse_passed_over(self, session: Session) -> None:
        """Answer a request that was not stored because there is no memory for it."""
        session.parser.passed_over = False
        error = OutOfMemory(TOO_BIG)
        self.state.stats.count_error(error.code)
        if session.reply_mode == REPLY_ON:
            session.out.append(error.encode())
        elif session.reply_mode == REPLY_SKIP:
            session.reply_mode = REPLY_ON

    def _run(self, session: Session, began_ns: i64) -> None:
        """Run requests until input runs out, the client blocks or the connection is to be closed."""
        state, parser, out = self.state, session.parser, session.out
        if state.paused_until_ms > state.now_ms:
            state.held[session.number] = session
            return
        commands = state.commands
        ready = state.lifecycle.ready
        noted = len(state.ready.changes)
        logged = state.ready.logged
        look_at: i64 = 0 if session.number in state.ready.slow else LOOK_PARTS
        session.recount()
        try:
            while session.blocked is None and not session.closing and not session.closed:
                if len(out) >= look_at:
                    if must_read(state, session):
                        break
                    look_at = len(out) + LOOK_PARTS
                args = parser.next()
                if args is None:
                    break
                if parser.passed_over:
                    self._refuse_passed_over(session)
                    continue
                entry = commands.get(args[0])
                if entry is None:
                    entry = commands.get(args[0].lower())
                if session.reply_mode != REPLY_ON:
                    self._run_muted(entry, session, args)
                else:
                    self._dispatch(entry, session, args)
                ended_ns: i64 = self._stopwatch_ns()
                if entry is not None:
                    spent_ns: i64 = ended_ns - began_ns
                    entry.latency.observe(spent_ns)
                    if spent_ns >= state.slow_ns:
                        note_slow(state, entry, args, spent_ns)
                began_ns = ended_ns
                if ready:
                    serve(state)
                if state.paused_until_ms > state.now_ms:
                    state.held[session.number] = session
                    break
        except ProtocolError as error:
            state.stats.count_error("ERR")
            out.append(error.encode())
            session.closing = True
        if session.closing:
            parser.discard()
        if out or session.closing:
            if len(state.ready.changes) != noted or state.ready.logged != logged:
                state.ready.tell_changed(session)
            state.ready.flush(session)

    def _dispatch(self, entry: CommandEntry | None, session: Session, args: list[bytes]) -> None:
        """Check and run one request; refusals are answered with their error."""
        try:
            if entry is None:
                self._unknown(session, args[0])
                return
            if not entry.accepts(len(args)):
                raise WrongArity(entry.command.name)
            self._check(entry, session, args)
            state = self.state
            if state.monitors:
                show_monitors(state, session, args)
            session.last_command = entry.name
            try:
                entry.handler(state, session, args)
                entry.done += 1
            finally:
                # Counted last: INFO does not see itself, and CONFIG RESETSTAT is the first command of the new count.
                entry.calls += 1
                state.stats.commands += 1
        except ReplyError as error:
            self.state.stats.count_error(error.code)
            if entry is not None:
                entry.failed += 1
            session.out.append(error.encode())
        except Exception as bug:  # noqa: BLE001 - a bug in one command must not take the jobs of all clients with it
            self.state.stats.count_error("ERR")
            if entry is not None:
                entry.failed += 1
            self._report_bug(session, args, bug)

    def _report_bug(self, session: Session, args: list[bytes], error: Exception) -> None:
        """A command failed in a way nobody meant: log where, tell the client, drop its connection."""
        name = args[0].decode("utf-8", "replace")
        report_bug(self.state, f"{name} with {len(args) - 1} arguments failed", error)
        session.out.append(b"-ERR internal error, the server's log has the details\r\n")
        session.closing = True

    def _check(self, entry: CommandEntry, session: Session, args: list[bytes]) -> None:
        """Refuse a command that may not run now."""
        state = self.state
        if state.password and not session.authenticated and not entry.before_auth:
            raise AuthenticationRequired
        if state.lifecycle.memory.level() >= EVICTION and not make_room(state) and entry.wants_memory(state, args):
            raise OutOfMemory
        if state.refusal and entry.needs_log:
            raise ReplyError(state.refusal)
        if state.loading and not entry.allowed_loading:
            raise Loading

    def _run_muted(self, entry: CommandEntry | None, session: Session, args: list[bytes]) -> None:
        """Run a request of a client that wants no reply (CLIENT REPLY OFF or SKIP)."""
        kept = len(session.out)
        if session.reply_mode == REPLY_SKIP:
            session.reply_mode = REPLY_ON
            self._dispatch(entry, session, args)
            del session.out[kept:]
            if session.blocked is not None:
                session.reply_mode = REPLY_SKIP
            return
        self._dispatch(entry, session, args)
        if session.reply_mode == REPLY_OFF:
            del session.out[kept:]

    def _unknown(self, session: Session, name: bytes) -> None:
        """A name that is not in the table: QUIT, or an error."""
        if name.lower() == b"quit":
            session.reply_ok()
            session.closing = True
            return
        raise ReplyError(f"ERR unknown command '{name.decode('utf-8', 'surrogateescape')}'")

    def _resume(self) -> None:
        """Run the input that clients sent while they were blocked, in the order in which they were served."""
        state = self.state
        while state.resumed:
            sessions = state.resumed
            state.resumed = []
            for session in sessions:
                if session.blocked is None and not session.closed and session.parser.buffered_bytes > 0:
                    self._run(session, self._stopwatch_ns())
        if state.lifecycle.wanted:
            handover.hand_over(state)

    def link_bytes(self, link: Link, data: bytes, now_ms: i64) -> None:
        """Bytes came on a link: handle the complete frames among them."""
        state = self.state
        state.now_ms = now_ms
        if link.closed or state.ended:
            return
        reader = link.reader
        reader.room_bytes = state.lifecycle.memory.frame_bytes
        passed_over = reader.passed_over
        try:
            reader.feed(data)
            while not link.closed:
                if reader.limit_bytes != MAX_FRAME_BYTES and self._is_from_member(link):
                    reader.limit_bytes = MAX_FRAME_BYTES
                frame = reader.next()
                if frame is None:
                    break
                self._hear(link, frame)
        except BusError as error:
            self._give_up(link, str(error))
        except Exception as bug:  # noqa: BLE001 - whatever another node sends, the jobs of this one live on
            report_bug(state, "a frame could not be handled", bug)
            self._give_up(link, "a frame could not be handled")
        if reader.passed_over != passed_over:
            state.stats.copies_refused += 1
        if reader.buffered_bytes > BIG_BYTES:
            state.filling[link] = None
        self._settle()
        if state.resumed:
            self._resume()

    def _is_from_member(self, link: Link) -> bool:
        """Whether the last frame came from a member, as each link begins with a PING or a MEET."""
        return not link.refused and link.sender in self.state.view.peers

    def _hear(self, link: Link, frame: Frame) -> None:
        """Handle one frame."""
        state = self.state
        message = self._messages[frame.kind] if frame.kind < kinds.KINDS else None
        if message is None or frame.version != VERSION:
            state.host.log("verbose", f"Unknown bus message of type {frame.kind}, version {frame.version}")
            return
        message.traffic.received += 1
        sender = frame.sender
        if sender == link.sender:
            sender = link.sender  # whose hash is known
        else:
            link.sender = sender
        peer = state.view.peers.get(sender)
        if message.from_anyone is not None:
            message.from_anyone(state, link, peer, frame)
        elif message.handler is not None and peer is not None and not link.refused:
            message.handler(state, peer, frame)

    def _give_up(self, link: Link, reason: str) -> None:
        """Close a link that brings nonsense."""
        state = self.state
        who = link.peer.id if link.peer is not None else link.remote_ip
        state.host.log("warning", f"Closing the bus link with {who.decode('ascii', 'replace')}: {reason}")
        if link.peer is not None and link.peer.link is link:
            link.peer.link = None
        state.ready.hang_up_link(link)

    def link_closed(self, link: Link, now_ms: i64) -> None:
        """A link is gone, or could not be opened."""
        self.state.now_ms = now_ms
        link.closed = True
        link.out.clear()
        peer = link.peer
        if peer is not None and peer.link is link:
            peer.link = None

    def found(self, name: bytes, addresses: list[bytes], now_ms: i64) -> None:
        """A name was looked up: its literal addresses, none when it has none."""
        self.state.now_ms = now_ms
        seeds.found(self.state, name, addresses)

    def _settle(self) -> None:
        """After something moved jobs: serve who waits here, then who asked from elsewhere."""
        state = self.state
        if state.lifecycle.ready:
            serve(state)
        if state.lifecycle.wanted:
            handover.hand_over(state)

    def tick(self, now_ms: i64) -> None:
        """Do what is due: wake jobs, end waits, and the regular duties."""
        state = self.state
        state.now_ms = now_ms
        if state.ended:
            return
        if state.loading:  # until all is loaded wake times and the duties of the rooms stand still
            loader = self.aof.loader
            if loader is not None:
                loader.slice()
            return
        lifecycle = state.lifecycle
        for timed in lifecycle.timers.due(now_ms, WAKE_UPS_PER_TICK):
            if timed.awake_ms == DUE:
                timed.awake_ms = 0
                try:
                    self._wake(timed)
                except Exception as bug:  # noqa: BLE001 - all others are still to be woken
                    report_bug(state, "what was due could not be done", bug)
        if 0 < self.aof.rewrite.slice_at_ms <= now_ms:
            self.aof.rewrite.slice()
        self._settle()
        if state.held and state.paused_until_ms <= now_ms:
            held = state.held
            state.held = {}
            state.resumed.extend(held.values())
        if now_ms >= self._next_cron_ms:
            self._cron(now_ms)
        if state.resumed:
            self._resume()

    def _wake(self, timed: Timed) -> None:
        """The wake time of something has come."""
        state = self.state
        if isinstance(timed, Job):
            if state.lifecycle.wake(timed, state.now_ms):
                state.stats.count_expired(is_unfinished=timed.is_unfinished)
        elif isinstance(timed, WaitForJob):
            time_out(state, timed)
        elif isinstance(timed, Alarm):
            timed.ring(state)

    def _cron(self, now_ms: i64) -> None:
        """Duties that come around `hz` times per second or less."""
        state = self.state
        self._next_cron_ms = now_ms + 1000 // state.config.hz
        if now_ms >= self._next_sample_ms:
            self._next_sample_ms = now_ms + SAMPLE_MS
            state.stats.sample(now_ms)
            self._memory_watch.look(state, self.aof.buffer_bytes)
            self._idle_queues.visit(state)
            for cron in self._crons:
                cron(state)
            self._settle()
        self._idle_clients.visit(state)

    def next_deadline_ms(self) -> int:
        """When `tick` should be called next; 0 for as soon as everybody else had a turn."""
        deadline = self._next_cron_ms
        if self.state.loading:
            loader = self.aof.loader
            return 0 if loader is not None and loader.ready else self.state.now_ms + SAMPLE_MS
        awake_ms = self.state.lifecycle.timers.next_ms()
        if 0 < awake_ms < deadline:
            deadline = awake_ms
        slice_at_ms = self.aof.rewrite.slice_at_ms
        if 0 < slice_at_ms < deadline:
            deadline = slice_at_ms
        held_until_ms = self.state.paused_until_ms
        if self.state.held and held_until_ms < deadline:
            deadline = held_until_ms
        return deadline
