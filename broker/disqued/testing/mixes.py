"""The mixes: which faults a run of the simulator injects, by name or by seed, and whether nodes keep AOF files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from disqued.testing import diskfaults as disks
from disqued.testing import faults
from disqued.testing import secretfaults as secrets
from disqued.testing.faults import Fault


@dataclass(frozen=True)
class Mix:
    """The faults of a run."""

    faults: tuple[Fault, ...] = ()
    configured: bool = False
    """Nodes have configuration files, which a controlled restart needs."""
    logged: bool = False
    """Nodes also keep append-only files."""
    adds_at_once: int = 1
    """How many jobs a producer adds in one pipeline."""
    secret: bool = False
    """Nodes have a secret of the cluster."""
    lasting: bool = False
    """No node is cut off or forgotten, so a job that was acknowledged without faults must not come back."""


HARMLESS: Final[tuple[Fault, ...]] = (faults.high_latency, faults.move_clock, disks.rewrite)
"""Faults that lose nothing. (Broken links are not among them: a node may have no link when it needs one.)"""

_NETWORK: Final[tuple[Fault, ...]] = (
    faults.partition,
    faults.isolation,
    faults.one_way,
    faults.flapping,
    faults.swizzle,
    faults.resets,
)
_CRASHES: Final[tuple[Fault, ...]] = (faults.kill, faults.power_off, faults.lose_disk)
_BANDWIDTH: Final[tuple[Fault, ...]] = (
    faults.high_latency,
    faults.low_bandwidth,
    faults.faulty_frames,
    faults.resets,
    faults.stop_process,
)
_MEMBERSHIP: Final[tuple[Fault, ...]] = (
    faults.leave,
    faults.forget,
    faults.reset_node,
    faults.join,
    faults.low_memory,
)
_KILLS: Final[tuple[Fault, ...]] = (faults.kill, disks.kill_some, disks.kill_all, disks.rewrite)
_POWER: Final[tuple[Fault, ...]] = (faults.power_off, disks.power_cut, disks.slow_sync, faults.kill, disks.rewrite)
_DISKS: Final[tuple[Fault, ...]] = (
    disks.full,
    disks.read_only,
    disks.broken,
    disks.failed_sync,
    disks.dying,
    disks.slow_sync,
    disks.hanging,
)
_RESTARTS: Final[tuple[Fault, ...]] = (disks.controlled_restart, disks.restart_all)

MIXES: Final[dict[str, Mix]] = {
    "calm": Mix(),
    "far": Mix(),
    "delays": Mix((faults.high_latency,)),
    "partitions": Mix(_NETWORK),
    "crashes": Mix(_CRASHES),
    "slow": Mix(_BANDWIDTH),
    "clocks": Mix((faults.move_clock, faults.stop_process, faults.high_latency)),
    "membership": Mix(_MEMBERSHIP),
    "all": Mix((*_NETWORK, *_BANDWIDTH[:3], *_CRASHES, faults.stop_process, faults.move_clock, *_MEMBERSHIP)),
    "logged calm": Mix(configured=True, logged=True),
    "restarts": Mix((*_RESTARTS, faults.kill), configured=True, lasting=True),
    "logged kills": Mix(_KILLS, configured=True, logged=True, lasting=True),
    "logged power": Mix(_POWER, configured=True, logged=True, lasting=True),
    "logged disks": Mix((*_DISKS, *_KILLS, faults.power_off), configured=True, logged=True, lasting=True),
    "logged restarts": Mix(
        (*_RESTARTS, faults.kill, disks.toggle, disks.rewrite, disks.rot), configured=True, logged=True, lasting=True
    ),
    "logged all": Mix(
        (
            *_NETWORK,
            *_BANDWIDTH,
            *_CRASHES,
            *_KILLS[1:],
            disks.power_cut,
            *_DISKS,
            *_RESTARTS,
            disks.toggle,
            *_MEMBERSHIP,
        ),
        configured=True,
        logged=True,
    ),
    "pipelines": Mix((*_NETWORK, *_CRASHES, faults.high_latency, faults.low_memory), adds_at_once=20),
    "logged pipelines": Mix(_POWER, configured=True, logged=True, adds_at_once=20),
    "logged clocks": Mix((disks.boot_early, disks.rewrite, faults.resets), configured=True, logged=True),
    "secrets": Mix(
        (secrets.rotate, secrets.set_wrong, faults.resets, faults.isolation, faults.kill, faults.high_latency),
        secret=True,
    ),
}
"""By name."""

_EVERY_FOURTH: Final = (
    "calm",
    "pipelines",
    "calm",
    "logged pipelines",
    "calm",
    "secrets",
    "calm",
    "logged clocks",
)


def mix_of(seed: int) -> str:
    """The mix of a seed: every fourth seed is one of `_EVERY_FOURTH`, the others cycle through the other mixes."""
    fourth, rest = divmod(seed, 4)
    if rest == 0:
        return _EVERY_FOURTH[fourth % len(_EVERY_FOURTH)]
    others = [name for name in MIXES if name not in _EVERY_FOURTH]
    return others[(seed - fourth - 1) % len(others)]
