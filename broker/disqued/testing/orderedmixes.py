"""The mixes of faults of the simulator of ordered queues, by name or by seed, and the faults that only it has."""

from __future__ import annotations

from typing import Final

from disqued.ordered.hosting import FILES
from disqued.ordered.replica import Replica
from disqued.ordered.room import ordered_of
from disqued.testing import diskfaults as disks
from disqued.testing import faults
from disqued.testing.cluster import Member
from disqued.testing.faults import Fault, Faults, Undo, take_down
from disqued.testing.network import Sent

_REPEATED: Final = frozenset({"RAFT", "RAFTSNAP", "BEAT", "DELIVER", "CATALOG", "CATALOGASK", "FOUND"})


def compaction(faults: Faults) -> Undo | None:
    """The replicas of a node write snapshots, as they do when that frees much of the disk."""
    member = faults.pick()
    if member is None:
        return None
    for replica in list(ordered_of(member.node.state).exchange.replicas.values()):
        assert isinstance(replica, Replica)
        replica.wants_snapshot()
    member.flush()
    return lambda: None


def transfer(faults: Faults) -> Undo | None:
    """A leader hands over to another replica."""
    member = faults.pick()
    if member is None:
        return None
    state = member.node.state
    replicas = [one for one in ordered_of(state).exchange.replicas.values() if isinstance(one, Replica)]
    leading = [one for one in replicas if one.raft.is_confirmed and len(one.raft.members.voters) > 1]
    for replica in leading:
        others = [voter for voter in replica.raft.members.voters if voter != replica.raft.replica]
        replica.raft.transfer(faults.chance.choice(others), state.now_ms)
        replica.look()
    member.flush()
    return lambda: None


def lost_disk(faults: Faults) -> Undo | None:
    """A node returns without its disk, once in a run, and always the same one.

    It has no replica any more, but its clients use the queues. Nothing happens while a group has no majority without
    it: a queue with one replica, which may also be on its way to this node.
    """
    members = faults.world.cluster.members
    if len(members) < 4 or "lost_disk" in faults.world.history.faults:
        return None
    member = members[1]
    if not member.running or _is_needed(member):
        return None
    take_down(faults, member, silent=False, keep_files=False)

    def undo() -> None:
        if not member.alive:
            member.restart(keep_disk=False)

    return undo


def _is_needed(member: Member) -> bool:
    """Whether a group with a replica on this node has no majority without it."""
    room = ordered_of(member.node.state)
    replicas = [one for one in room.exchange.replicas.values() if isinstance(one, Replica)]
    groups = [one.raft.members for one in replicas if one.raft.members.has(room.hosting.identity)]
    return any(len(members.voters) - 1 < members.quorum for members in groups)


def bit_rot(faults: Faults) -> Undo | None:
    """Bits change in the log of one node. It is always the same: its queues have a majority without it."""
    member = faults.world.cluster.members[1]
    chance = faults.chance
    files = {name: len(data) for name, data in member.host.disk.files.items() if name.startswith(FILES) and data}
    if not files:
        return None
    for name in chance.choices(list(files), list(files.values()), k=chance.choice((1, 3, 20))):
        member.host.disk.flip(name, chance.randrange(8 * files[name]))
    return lambda: None


def lossy(faults: Faults) -> Undo:
    """A tenth of the frames that nodes repeat are lost. Requests are lost with their connection only (`resets`)."""
    chance = faults.chance
    filters = faults.network.filters

    def lose(sent: Sent) -> bool:
        return sent.kind in _REPEATED and chance.random() < 0.1

    filters.append(lose)
    return lambda: filters.remove(lose) if lose in filters else None


HARMLESS: Final[tuple[Fault, ...]] = (faults.high_latency, compaction, transfer)

_NETWORK: Final[tuple[Fault, ...]] = (
    faults.partition,
    faults.isolation,
    faults.one_way,
    faults.flapping,
    faults.swizzle,
    faults.resets,
)
_SLOW: Final[tuple[Fault, ...]] = (
    faults.high_latency,
    faults.low_bandwidth,
    lossy,
    faults.resets,
    faults.stop_process,
)
_CRASHES: Final[tuple[Fault, ...]] = (faults.kill, disks.kill_some, disks.kill_all, faults.power_off)
_POWER: Final[tuple[Fault, ...]] = (faults.power_off, disks.power_cut, disks.slow_sync, faults.kill, compaction)
_DISKS: Final[tuple[Fault, ...]] = (
    disks.full,
    disks.read_only,
    disks.broken,
    disks.failed_sync,
    disks.slow_sync,
    disks.hanging,
)

MIXES: Final[dict[str, tuple[Fault, ...]]] = {
    "calm": (),
    "changes": (compaction, transfer, faults.high_latency),
    "network": (*_NETWORK, transfer),
    "crashes": (*_CRASHES, compaction),
    "power": _POWER,
    "slow": (*_SLOW, transfer),
    "disks": (*_DISKS, faults.kill, faults.power_off, compaction),
    "clocks": (faults.stop_process, faults.high_latency, faults.kill, transfer, faults.move_clock),
    "empty": (lost_disk, faults.resets, faults.high_latency, compaction, transfer),
    "all": (*_NETWORK, *_SLOW, *_CRASHES, *_DISKS, disks.power_cut, compaction, transfer, faults.move_clock),
    "rot": (bit_rot, bit_rot, faults.kill, faults.power_off, faults.resets, faults.isolation, compaction, transfer),
}
"""By name."""


def mix_of(seed: int) -> str:
    """The mix of a seed: they take turns."""
    return list(MIXES)[seed % len(MIXES)]
