"""Faults of the secret of a cluster: it is rotated while nodes run, and one node has another one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.testing.faults import Faults, Undo

if TYPE_CHECKING:
    from disqued.testing.cluster import Member
    from disqued.testing.history import History
    from disqued.testing.network import Sent

PATH: Final = "/etc/disque/cluster-secret"
WRONG: Final = b"the secret of another cluster"
_SPREAD_MS: Final = 250
"""How long it takes until all nodes have a new file."""
_AUTHENTICATION: Final = frozenset({kinds.CHALLENGE, kinds.RESPONSE, kinds.PROOF})


def secret_after(number: int) -> bytes:
    """The secret after this many rotations."""
    return b"secret of the cluster %d" % number


def write(member: Member, *secrets: bytes) -> None:
    """Write the file of a node, which reads it again if it runs."""
    member.host.secret_files[PATH] = b"\n".join(secrets)
    if member.alive:
        member.on_input(lambda: member.node.files_changed(member.now_ms))


def give(member: Member) -> None:
    """Have a new node use the first secret."""
    write(member, secret_after(0))
    member.tell("CONFIG", "SET", "cluster-secret-file", PATH)


def _is_settled(faults: Faults) -> bool:
    """Whether all nodes have the same single secret."""
    return len({member.host.secret_files[PATH] for member in faults.world.cluster.members}) == 1 and (
        b"\n" not in faults.world.cluster.members[0].host.secret_files[PATH]
    )


def _write_all(faults: Faults, *secrets: bytes) -> None:
    """Write the files of all nodes, one after the other."""
    for member in faults.world.cluster.members:
        faults.world.later(faults.chance.random() * _SPREAD_MS, partial(write, member, *secrets))


def rotate(faults: Faults) -> Undo | None:
    """All nodes get a second secret, and later lose the first one."""
    if not _is_settled(faults):
        return None
    old = faults.world.cluster.members[0].host.secret_files[PATH]
    new = secret_after(int(old.rpartition(b" ")[2]) + 1)
    write(faults.world.cluster.members[0], old, new)
    _write_all(faults, old, new)
    return lambda: _write_all(faults, new)


def set_wrong(faults: Faults) -> Undo | None:
    """A node gets another secret, and its connections break: it is cut off."""
    member = faults.pick()
    if member is None or not _is_settled(faults):
        return None
    right = member.host.secret_files[PATH]
    write(member, WRONG)
    for other in faults.world.cluster.members:
        if other is not member:
            faults.network.reset(member, other)
    return lambda: write(member, right)


class SecretWatch:
    """Checks that a node with another secret gets nothing from others."""

    def __init__(self, history: History) -> None:
        self._history = history

    def __call__(self, sent: Sent) -> None:
        """Check a frame."""
        secrets = [end.node.state.secrets for end in (sent.sender, sent.receiver) if end is not None]
        if (WRONG,) in secrets and len(set(secrets)) > 1 and sent.frame.kind not in _AUTHENTICATION:
            self._history.violate(sent.at_ms, f"a {sent.kind} was sent between nodes with different secrets")
