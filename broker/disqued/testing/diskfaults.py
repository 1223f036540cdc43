"""Faults of nodes that keep files: killed processes, power loss, controlled restarts, and failing disks."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from disqued.core.host import disk
from disqued.testing.cluster import Member
from disqued.testing.faults import Faults, Undo, bring_back, note_jobs, take_down
from disqued.testing.logcheckers import log_state
from disqued.testing.logged import LOG_NAME
from disqued.testing.snapshot import snapshot

SLOW_SYNC_MS = (300, 1500, 4000)
BACK_WITHIN_MS = 1500
REPAIRED_AFTER_MS = 1800
BEHIND_MS = (5 * 60_000, 3_600_000, 3 * 86_400_000)
REWRITTEN_AFTER_MS = 2500
"""How long after its clock was corrected a node has certainly rewritten its file."""


# --- crashes ----------------------------------------------------------------------------------------------------------


def _take_down_all(faults: Faults, members: Sequence[Member], *, power: bool) -> Undo:
    """Several nodes go down at the same moment and return one after the other."""
    for member in members:
        take_down(faults, member, silent=power, power=power)

    def undo() -> None:
        for member in members:
            _return_later(faults, member)

    return undo


def _return_later(faults: Faults, member: Member) -> None:
    faults.world.later(faults.chance.random() * BACK_WITHIN_MS, lambda: bring_back(faults, member))


def kill_some(faults: Faults) -> Undo | None:
    """All processes but one are killed at once, which may be all but one of the copies of a job."""
    running = faults.running()
    if len(running) < 2:
        return None
    faults.chance.shuffle(running)
    return _take_down_all(faults, running[1:], power=False)


def kill_all(faults: Faults) -> Undo | None:
    """All processes are killed at once, including those that are loading."""
    members = [member for member in faults.world.cluster.members if member.running]
    return _take_down_all(faults, members, power=False) if members else None


def power_cut(faults: Faults) -> Undo | None:
    """All machines lose power at once."""
    members = [member for member in faults.world.cluster.members if member.running]
    return _take_down_all(faults, members, power=True) if members else None


# --- clocks ---------------------------------------------------------------------------------------------------------


def boot_early(faults: Faults) -> Undo | None:
    """A machine boots before its clock is synchronised, minutes to days behind; the clock is corrected later.

    The node starts with the time of its files. If its disk is new, it starts with the wrong time, and its next start,
    with the right one, must not end the jobs that it had written by then.
    """
    member = faults.pick()
    if member is None or member.number in faults.unsure_clocks:
        return None
    new_disk = faults.chance.random() < 0.5
    take_down(faults, member, silent=False, keep_files=not new_disk)
    member.take_wall_time()
    behind_ms = faults.chance.choice(BEHIND_MS)
    if new_disk:
        member.skew_ms -= behind_ms
    else:
        member.host.wall_ahead_us -= behind_ms * 1000
    faults.unsure_clocks.add(member.number)
    bring_back(faults, member, keep_files=not new_disk)

    def undo() -> None:
        member.host.wall_ahead_us = -member.skew_ms * 1000
        faults.world.later(REWRITTEN_AFTER_MS, lambda: faults.unsure_clocks.discard(member.number))

    return undo


# --- controlled restarts ----------------------------------------------------------------------------------------------

_BEFORE = (("CONFIG", "SET", "aof-enqueue-jobs-once", "yes"), ("CONFIG", "REWRITE"))
_AFTER_ALL = (("CONFIG", "SET", "aof-enqueue-jobs-once", "no"), ("CONFIG", "REWRITE"))


def _shut_down(faults: Faults, member: Member) -> bool:
    """Shut a node down as an administrator does to keep its queues; False if the node does not end.

    A node that writes a restart marker needs no directive before.
    """
    history = faults.world.history
    told = not member.config.aof_restart_marker
    for words in _BEFORE if told else ():
        member.tell(*words)
    before = snapshot(member)
    note_jobs(faults, member)
    refused = member.shut_down("REWRITE-AOF")
    if refused is not None:
        history.note(faults.world.now_ms, f"node {member.number} does not shut down: {refused!r}")
        for words in _AFTER_ALL if told else ():
            member.tell(*words)
        return False
    history.expected[member.number] = before
    history.note(faults.world.now_ms, f"node {member.number} was shut down")
    return True


def controlled_restart(faults: Faults) -> Undo | None:
    """A node is shut down and started again, as for an upgrade."""
    member = faults.pick()
    if member is None or not _shut_down(faults, member):
        return None
    return lambda: bring_back(faults, member)


def restart_all(faults: Faults) -> Undo | None:
    """All nodes are shut down and started again."""
    ended = [member for member in faults.running() if _shut_down(faults, member)]

    def undo() -> None:
        for member in ended:
            _return_later(faults, member)

    return undo if ended else None


# --- the append-only file ---------------------------------------------------------------------------------------------


def rewrite(faults: Faults) -> Undo | None:
    """An administrator starts a rewrite of the AOF."""
    member = faults.pick()
    if member is None:
        return None
    member.tell("BGREWRITEAOF")
    return lambda: None


def toggle(faults: Faults) -> Undo | None:
    """A node keeps no append-only file for a while."""
    member = faults.pick()
    if member is None or log_state(member) != "on":
        return None
    member.tell("CONFIG", "SET", "appendonly", "no")
    faults.world.history.log_off_ms[member.number] = faults.world.now_ms

    def undo() -> None:
        if member.serving:
            member.tell("CONFIG", "SET", "appendonly", "yes")
            member.tell("CONFIG", "REWRITE")

    return undo


def rot(faults: Faults) -> Undo | None:
    """A bit flips in the AOF of a node that is down."""
    member = faults.pick()
    if member is None:
        return None
    take_down(faults, member, silent=False)
    size = len(member.host.disk.files.get(LOG_NAME, b""))
    if size > 0:
        member.host.disk.flip(LOG_NAME, int(faults.chance.random() * size * 8))
        now_ms = faults.world.now_ms
        faults.world.history.lose_memory(member.number)
        faults.world.history.owed.pop(member.number, None)
        faults.world.history.set_back(member.number, now_ms, 0, outdated=True)
    return lambda: bring_back(faults, member)


# --- disks ------------------------------------------------------------------------------------------------------------


def _trouble(faults: Faults, member: Member) -> Undo:
    """Record that the disk of a member is in trouble until it is repaired."""
    faults.world.history.begin_trouble(member.number, faults.world.now_ms)

    def undo() -> None:
        faults.settle_disk(member)
        member.host.disk.finish()
        faults.world.history.end_trouble(member.number, faults.world.now_ms)

    return undo


def full(faults: Faults) -> Undo | None:
    """The disk is full, or nearly."""
    member = faults.pick()
    if member is None:
        return None
    member.host.disk.fill(spare_bytes=int(faults.chance.random() * 400))
    return _trouble(faults, member)


def read_only(faults: Faults) -> Undo | None:
    """The file system is read-only."""
    member = faults.pick()
    if member is None:
        return None
    member.host.disk.fail(error=errno.EROFS)
    return _trouble(faults, member)


def broken(faults: Faults) -> Undo | None:
    """The device fails, for all or some kinds of work."""
    member = faults.pick()
    if member is None:
        return None
    verbs = faults.chance.choice(((), (disk.APPEND,), (disk.SYNC,), (disk.REPLACE,), (disk.APPEND, disk.TRUNCATE)))
    member.host.disk.fail(*verbs, error=errno.EIO)
    return _trouble(faults, member)


def failed_sync(faults: Faults) -> Undo | None:
    """One sync fails. What it should have written may be lost even though the next sync succeeds."""
    member = faults.pick()
    if member is None:
        return None
    member.host.disk.fail(disk.SYNC, error=errno.EIO, times=1)
    return _trouble(faults, member)


def dying(faults: Faults) -> Undo | None:
    """Syncs or all work fail, then the machine loses power, and it is back before the disk is repaired."""
    member = faults.pick()
    if member is None:
        return None
    member.host.disk.fail(*faults.chance.choice(((), (disk.SYNC,), (disk.SYNC,))), error=errno.EIO)
    repair = _trouble(faults, member)
    gone: list[Member] = []

    def power_off() -> None:
        if member.running and member.host.disk.failing(disk.SYNC):
            take_down(faults, member, silent=True, power=True)
            gone.append(member)

    def undo() -> None:
        if gone:
            bring_back(faults, member)
            faults.world.later(REPAIRED_AFTER_MS, repair)
        else:
            repair()

    faults.world.later(100 + faults.chance.random() * 1000, power_off)
    return undo


def slow_sync(faults: Faults) -> Undo | None:
    """Syncs take up to seconds, and writes are slow too."""
    member = faults.pick()
    if member is None:
        return None
    delays_ms = member.host.disk.delay_ms
    delays_ms[disk.SYNC] = faults.chance.choice(SLOW_SYNC_MS)
    delays_ms[disk.APPEND] = faults.chance.choice((0, 5, 80))
    delays_ms[disk.REPLACE] = delays_ms[disk.SYNC] + 20
    return _trouble(faults, member)


def hanging(faults: Faults) -> Undo | None:
    """Writes or syncs hang."""
    member = faults.pick()
    if member is None:
        return None
    member.host.disk.hold(*faults.chance.choice(((disk.SYNC,), (disk.APPEND, disk.SYNC), ())))
    return _trouble(faults, member)
