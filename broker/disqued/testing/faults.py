"""Faults that the simulator injects into a cluster: each begins, lasts a while and is undone, depending on the seed.

This module has the faults of the network, of processes and of administration; `diskfaults` has those of disks, and
`mixes` selects the faults of a run. The list follows Jepsen (partition, kill, pause, clock, packet, membership) and
FoundationDB ("swizzle": cut one after the other, restore in random order).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from disqued.core.host import disk
from disqued.core.jobs.job import ACKED, ACTIVE, QUEUED, Job
from disqued.membership.nodesconf import decode
from disqued.testing.cluster import PORT, Member
from disqued.testing.history import Owed
from disqued.testing.logcheckers import log_state
from disqued.testing.logged import LOG_NAME
from disqued.testing.workload import World

Undo: TypeAlias = Callable[[], None]
Fault: TypeAlias = "Callable[[Faults], Undo | None]"

WINDOW_MS: Final = 1300
"""With `everysec`, records of this age are synced, plus the time that two syncs take."""
RESTART_MS: Final = 700
"""When a supervisor restarts a node that ended."""
_BAD_FORMAT: Final = re.compile("Bad file format .* at byte ([0-9]+):")
HOUR_US: Final = 3_600_000_000
SPARE_IPS: Final = 100
"""Added to the number of a node for a new address, once for each move."""


class Faults:
    """Injects the faults of a mix into one cluster; several may be active at a time."""

    def __init__(self, world: World, faults: tuple[Fault, ...], harmless: tuple[Fault, ...]) -> None:
        self.world = world
        self.network = world.cluster.network
        self.chance = world.chance
        self._faults = faults
        self._harmless = harmless
        self._active: list[Undo] = []
        self.settle_disk: Callable[[Member], None] = lambda member: member.host.disk.repair()
        """Restores the disk of a member to its normal state."""
        self.stopped = False
        self.moves = 0
        self.unsure_clocks: set[int] = set()
        """Numbers of members with a wrong wall clock, or with a file that may still have times of a wrong one."""

    def start(self, every_ms: int) -> None:
        """Start to inject faults."""
        if self._faults:
            self.world.later(self.chance.random() * every_ms, lambda: self._inject(every_ms))

    def _inject(self, every_ms: int) -> None:
        if self.stopped:
            return
        fault = self.chance.choice(self._faults)
        undo = fault(self)
        history = self.world.history
        if undo is not None:
            name = fault.__name__
            history.disturb(self.world.now_ms)
            history.lossy |= fault not in self._harmless
            history.faults[name] = history.faults.get(name, 0) + 1
            history.note(self.world.now_ms, f"fault: {name}")
            self._active.append(undo)
            self.world.later(300 + self.chance.random() * 4000, lambda: self._undo(name, undo))
        self.world.later(every_ms // 2 + self.chance.random() * every_ms, lambda: self._inject(every_ms))

    def _undo(self, name: str, undo: Undo) -> None:
        if undo in self._active:
            self._active.remove(undo)
            self.world.history.note(self.world.now_ms, f"undone: {name}")
            undo()
            self.world.history.disturb(self.world.now_ms, over=True)

    def stop(self) -> None:
        """Inject no more faults and undo the active ones."""
        self.stopped = True
        for undo in list(self._active):
            self._undo("all", undo)
        self.world.cluster.heal()
        for member in self.world.cluster.members:
            if member.paused:
                member.resume()
            if not member.alive:
                member.restart()
            self.settle_disk(member)
            member.finish()

    def supervise(self) -> None:
        """Restart nodes that ended by themselves. Only a failing or damaged disk excuses that."""
        for member in self.world.cluster.members:
            if member.alive and (member.host.ended or "").startswith("failed"):
                self._revive(member, member.host.ended or "")

    def _revive(self, member: Member, why: str) -> None:
        """Restart a node as a supervisor does, after an administrator cut off the unreadable part of its file."""
        history = self.world.history
        now_ms = self.world.now_ms
        history.note(now_ms, f"node {member.number} {why}")
        damaged = _BAD_FORMAT.search(why)
        if damaged is not None and history.is_set_back(member.number, 0, now_ms):
            member.host.disk.put(LOG_NAME, bytes(member.host.disk.files[LOG_NAME][: int(damaged[1])]))
        elif history.is_in_trouble(member.number, now_ms):
            history.rare["node did not start for a failing disk"] += 1
        else:
            history.violate(now_ms, f"node {member.number} does not start: {why}")
        member.crash()
        self.world.later(RESTART_MS, partial(bring_back, self, member))

    def repair(self) -> None:
        """Do what an administrator does in the end: FORGET nodes that are gone, MEET nodes that were lost."""
        members = [member for member in self.world.cluster.members if member.serving]
        present = [member.id for member in members]
        for member in members:
            for words in (("CLUSTER", "LEAVING", "no"), ("CONFIG", "SET", "maxmemory", "0")):
                member.tell(*words)
            for peer in list(member.node.state.view.peers.values()):
                if peer.id not in present and not peer.in_handshake:
                    member.tell("CLUSTER", "FORGET", peer.id)
            self.meet_all(member)

    def meet_all(self, member: Member) -> None:
        """Have a node meet all nodes that it does not know."""
        known = member.node.state.view.peers
        for other in self.world.cluster.members:
            if other is not member and other.alive and other.id not in known:
                member.tell("CLUSTER", "MEET", other.ip.decode(), PORT)

    # --- targets ------------------------------------------------------------------------------------------------------

    def running(self) -> list[Member]:
        """Members that serve clients."""
        return [member for member in self.world.cluster.members if member.serving]

    def pick(self) -> Member | None:
        """A random running member; None if fewer than two run."""
        running = self.running()
        return self.chance.choice(running) if len(running) > 1 else None

    def pairs(self) -> list[tuple[Member, Member]]:
        """All pairs of members, in both directions."""
        members = self.world.cluster.members
        return [(one, other) for one in members for other in members if one is not other]


# --- the network ------------------------------------------------------------------------------------------------------


def _cut(faults: Faults, pairs: list[tuple[Member, Member]]) -> Undo:
    for pair in pairs:
        faults.network.cut(*pair)

    def undo() -> None:
        for pair in pairs:
            faults.network.repair(*pair)
            if faults.chance.random() < 0.3:
                faults.network.reset(*pair)

    return undo


def partition(faults: Faults) -> Undo:
    """Two groups cannot communicate."""
    side = {member: faults.chance.random() < 0.5 for member in faults.world.cluster.members}
    return _cut(faults, [pair for pair in faults.pairs() if side[pair[0]] != side[pair[1]]])


def isolation(faults: Faults) -> Undo:
    """One node is cut off from all others."""
    isolated = faults.chance.choice(faults.world.cluster.members)
    return _cut(faults, [pair for pair in faults.pairs() if isolated in pair])


def one_way(faults: Faults) -> Undo:
    """Some directions are cut and the opposite ones are not."""
    return _cut(faults, [pair for pair in faults.pairs() if faults.chance.random() < 0.3])


def flapping(faults: Faults) -> Undo:
    """A connection is cut and restored five times a second."""
    one, other = faults.chance.sample(faults.world.cluster.members, 2)
    pairs = [(one, other), (other, one)]
    over: list[bool] = []

    def flip(down: bool) -> None:
        if over:
            return
        for pair in pairs:
            if down:
                faults.network.cut(*pair)
            else:
                faults.network.repair(*pair)
        faults.world.later(200, lambda: flip(not down))

    def undo() -> None:
        over.append(True)
        for pair in pairs:
            faults.network.repair(*pair)

    flip(True)
    return undo


def swizzle(faults: Faults) -> Undo:
    """Connections of a node are cut one by one and restored in another order."""
    member = faults.chance.choice(faults.world.cluster.members)
    pairs = [pair for pair in faults.pairs() if member in pair]
    faults.chance.shuffle(pairs)
    over: list[bool] = []

    def cut_next(rest: list[tuple[Member, Member]]) -> None:
        if rest and not over:
            faults.network.cut(*rest[0])
            faults.world.later(50 + faults.chance.random() * 200, lambda: cut_next(rest[1:]))

    def restore_next(rest: list[tuple[Member, Member]]) -> None:
        if rest:
            faults.network.repair(*rest[0])
            faults.world.later(50 + faults.chance.random() * 200, lambda: restore_next(rest[1:]))

    def undo() -> None:
        over.append(True)
        faults.chance.shuffle(pairs)
        restore_next(pairs)

    cut_next(pairs)
    return undo


def high_latency(faults: Faults) -> Undo:
    """One node has a high latency."""
    member = faults.chance.choice(faults.world.cluster.members)
    paths = [faults.network.path(*pair) for pair in faults.pairs() if member in pair]
    for path in paths:
        path.delay_ms, path.jitter_ms = 250, 100

    def undo() -> None:
        for path in paths:
            path.reset()

    return undo


def low_bandwidth(faults: Faults) -> Undo:
    """The bandwidth to one node is low."""
    member = faults.chance.choice(faults.world.cluster.members)
    paths = [faults.network.path(*pair) for pair in faults.pairs() if pair[1] is member]
    for path in paths:
        path.bytes_per_ms = 1

    def undo() -> None:
        for path in paths:
            path.reset()

    return undo


def faulty_frames(faults: Faults) -> Undo:
    """Frames are lost, duplicated and reordered in some directions."""
    paths = [faults.network.path(*pair) for pair in faults.pairs() if faults.chance.random() < 0.5]
    for path in paths:
        path.loss, path.duplication, path.displacement = 0.1, 0.05, 0.05

    def undo() -> None:
        for path in paths:
            path.reset()

    return undo


def resets(faults: Faults) -> Undo:
    """Connections break, and data in transit is lost."""
    for one, other in faults.pairs():
        if faults.chance.random() < 0.4:
            faults.network.reset(one, other)
    return lambda: None


# --- processes and machines -------------------------------------------------------------------------------------------


def _can_move(faults: Faults, moving: Member) -> bool:
    """Whether all nodes will find each other when one of them moves, whose new address no other node knows.

    It is enough if one of two nodes knows the address of the other, or if both find a third one. A node that is down
    and has no file returns as a new one, which meets all others.
    """
    if not moving.host.nodes_text.strip():
        return True
    members = [member for member in faults.world.cluster.members if member.alive or member.host.nodes_text.strip()]
    known = {member: _addresses(member) for member in members}
    found = [moving]
    others = [member for member in members if member is not moving]
    for one in found:
        for other in [*others]:
            knows = known[one].get(other.id) == other.ip
            is_known = one is not moving and known[other].get(one.id) == one.ip
            if knows or is_known:
                found.append(other)
                others.remove(other)
    return not others


def _addresses(member: Member) -> dict[bytes, bytes]:
    """The addresses of other nodes that a node knows, or that its file has while it is down, by ID."""
    if member.alive:
        return {peer.id: peer.ip for peer in member.node.state.view.peers.values()}
    return {peer.id: peer.ip for peer in decode(member.host.nodes_text).peers}


def bring_back(faults: Faults, member: Member, *, keep_files: bool = True, move: bool = False) -> None:
    """Start a node that is down, at another address if `move`, unless the nodes could not find each other then."""
    if member.alive:
        return
    ip = member.ip
    if move and (not keep_files or _can_move(faults, member)):
        faults.moves += 1
        ip = b"10.0.%d.%d" % (faults.moves, member.number)
    old_id = member.id
    if faults.world.history.policy:
        member.take_wall_time()
    member.restart(ip, keep_nodes=keep_files, keep_disk=keep_files)
    faults.world.history.note(faults.world.now_ms, f"node {member.number} is back")
    if member.id != old_id:
        faults.world.history.rare["node returned under a new ID"] += 1
        faults.meet_all(member)


def _lose_memory(faults: Faults, member: Member) -> None:
    """Record which copies are lost with a member, including those that leaving nodes transferred to it."""
    history = faults.world.history
    tables = {other.number: other.node.state.lifecycle.table for other in faults.world.cluster.members}
    for job in tables[member.number].jobs():
        attempt = history.attempt_of(job.body)
        if attempt is None:
            continue
        holders = [number for number, before in attempt.holders if history.losses(number) == before]
        if member.number not in holders and any(tables[number].get(job.id) is None for number in holders):
            attempt.new_owners_lost += 1
    history.lose_memory(member.number)


def note_jobs(faults: Faults, member: Member, *, owed: bool = True) -> None:
    """Record what a member that goes down has on disk, so that these copies count until it is back.

    With `owed`, it must then have everything again that it confirmed.
    """
    if member.node.state.loading:
        return
    history = faults.world.history
    lasting = [job for job in member.node.state.lifecycle.table.jobs() if job.state in {ACTIVE, QUEUED}]
    history.away[member.number] = {job.id for job in lasting}
    if owed:
        promised = history.promised.pop(member.number, {})
        fast_ms = member.now_ms - member.net.now_ms
        history.owed[member.number] = {
            job.id: Owed(job.body, int(job.expire_at_s) * 1000 - fast_ms)
            for job in lasting
            if job.retry_s > 0 and promised.get(job.id) is job
        }


def take_down(faults: Faults, member: Member, *, silent: bool, power: bool = False, keep_files: bool = True) -> None:
    """Take a node down. It loses what is not on its disk: everything unless it keeps an append-only file."""
    history = faults.world.history
    now_ms = faults.world.now_ms
    loading = member.node.state.loading
    if not keep_files or not (loading or log_state(member) == "on"):
        _lose_memory(faults, member)
        history.owed.pop(member.number, None)
        if history.policy and keep_files:
            history.set_back(member.number, now_ms, history.log_off_ms.get(member.number, 0), outdated=True)
    else:
        note_jobs(faults, member, owed=not power or history.policy == "always")
        if power and history.policy != "always":
            history.owed.pop(member.number, None)
            sync_ms = member.host.disk.delay_ms.get(disk.SYNC, 0) + member.host.disk.jitter_ms
            ended_ms = history.killed_ms.get(member.number, now_ms) if loading else now_ms
            safe_ms = history.safe_ms(member.number, ended_ms, WINDOW_MS + 2 * sync_ms)
            history.set_back(member.number, now_ms, safe_ms if history.policy == "everysec" else 0)
    if power:
        member.lose_power()
    else:
        if not loading:
            history.killed_ms[member.number] = now_ms
        member.crash(silent=silent)
    history.note(now_ms, f"node {member.number} is down")


def kill(faults: Faults) -> Undo | None:
    """A process is killed and started again."""
    member = faults.pick()
    if member is None:
        return None
    take_down(faults, member, silent=False)
    return lambda: bring_back(faults, member)


def power_off(faults: Faults) -> Undo | None:
    """A machine loses power for a while; its peers get no connection reset."""
    member = faults.pick()
    if member is None:
        return None
    take_down(faults, member, silent=True, power=True)
    move = faults.chance.random() < 0.3
    return lambda: bring_back(faults, member, move=move)


def lose_disk(faults: Faults) -> Undo | None:
    """A node returns without its disk, sometimes at another address."""
    member = faults.pick()
    if member is None:
        return None
    take_down(faults, member, silent=faults.chance.random() < 0.5, keep_files=False)
    move = faults.chance.random() < 0.5
    return lambda: bring_back(faults, member, keep_files=False, move=move)


def stop_process(faults: Faults) -> Undo | None:
    """A process is suspended for a while (SIGSTOP)."""
    member = faults.pick()
    if member is None:
        return None
    member.pause()
    return lambda: member.resume() if member.alive and member.paused else None


def move_clock(faults: Faults) -> Undo:
    """A wall clock jumps by an hour."""
    member = faults.chance.choice(faults.world.cluster.members)
    jump_us = faults.chance.choice((-HOUR_US, HOUR_US))
    member.host.wall_ahead_us += jump_us

    def undo() -> None:
        member.host.wall_ahead_us -= jump_us

    return undo


# --- administration ---------------------------------------------------------------------------------------------------


def _note_missing_copies(faults: Faults, member: Member, had: list[Job]) -> None:
    """Where too few nodes accepted the jobs of a leaving node, fewer copies may fail."""
    tables = [other.node.state.lifecycle.table for other in faults.running()]
    for job in had:
        attempt = faults.world.history.attempt_of(job.body)
        if attempt is not None and member.node.state.lifecycle.table.get(job.id) is None:
            copies = len([table for table in tables if table.get(job.id) is not None])
            attempt.copies_short = max(attempt.copies_short, attempt.replicate - copies)


def leave(faults: Faults) -> Undo | None:
    """A node starts leaving; after a while the administrator revokes that."""
    member = faults.pick()
    if member is None or any(other.node.state.view.leaving for other in faults.running()):
        return None
    had = [job for job in member.node.state.lifecycle.table.jobs() if job.state != ACKED]
    member.tell("CLUSTER", "LEAVING", "yes")

    def undo() -> None:
        _note_missing_copies(faults, member, had)
        faults.world.history.stayed_ms[member.number] = faults.world.now_ms
        if member.running:
            midway = member.node.state.view.leaving and member.node.state.lifecycle.table.count > 0
            faults.world.history.rare["leaving undone midway"] += midway
            member.tell("CLUSTER", "LEAVING", "no")

    return undo


def forget(faults: Faults) -> Undo | None:
    """All nodes forget a running node, and meet it again later."""
    member = faults.pick()
    if member is None:
        return None
    for other in faults.running():
        if other is not member and member.id in other.node.state.view.peers:
            other.tell("CLUSTER", "FORGET", member.id)

    def undo() -> None:
        if member.running:
            for other in faults.running():
                if other is not member:
                    other.tell("CLUSTER", "MEET", member.ip.decode(), PORT)

    return undo


def reset_node(faults: Faults) -> Undo | None:
    """A node is reset, which deletes its jobs, and is met again later."""
    member = faults.pick()
    if member is None:
        return None
    _lose_memory(faults, member)
    member.tell("CLUSTER", "RESET", faults.chance.choice(("SOFT", "HARD")))

    def undo() -> None:
        if member.running:
            faults.meet_all(member)

    return undo


def join(faults: Faults) -> Undo | None:
    """A node joins and stays."""
    cluster = faults.world.cluster
    first = faults.pick()
    if first is None or len(cluster.members) >= 6:
        return None
    member = cluster.add(int(faults.chance.random() * (1 << 40)))
    first.tell("CLUSTER", "MEET", member.ip.decode(), PORT)
    return lambda: None


def low_memory(faults: Faults) -> Undo | None:
    """A node is so short of memory that it keeps no copies of new jobs."""
    member = faults.pick()
    if member is None:
        return None
    used = member.node.state.lifecycle.memory.used_bytes
    member.tell("CONFIG", "SET", "maxmemory", used * 100 // 80)

    def undo() -> None:
        if member.running:
            member.tell("CONFIG", "SET", "maxmemory", 0)

    return undo
