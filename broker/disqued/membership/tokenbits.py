"""TOKENBITS: the number of a node in its claims, whose last 16 bits it is. Claims of two nodes must never be equal.

The number comes from the ID of the node. Of two members with equal numbers the one with the greater ID takes the next
free one, saves it in nodes.conf, and announces it (`announcements`). It gives no claims until it is saved. A number is
never given back: its claims may still be known somewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.jobs.claims import NO_NODE, default_number
from disqued.membership.kept import membership_of

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.cluster.view import ClusterView
    from disqued.core.runtime.state import NodeState
    from disqued.membership.kept import Membership

_MOST_DIGITS: Final = 5
_REFUSAL: Final = (
    "CLOCK This node gives no claims until it has saved its number in nodes.conf, because another node had the same "
    "number. Try again, or use another node"
)


def announced(view: ClusterView) -> bytes:
    """What this node announces: its number if it is not the one that its ID gives."""
    return b"" if view.claim_number == default_number(view.node_id) else b"%d" % view.claim_number


def parse(word: bytes) -> int:
    """A number in a message or a file; -1 if the word is none."""
    if not word.isdigit() or len(word) > _MOST_DIGITS or int(word) >= NO_NODE:
        return -1
    return int(word)


def handle_tokenbits(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Take in a node's number. Anything else is ignored."""
    number = parse(frame.payload)
    if number >= 0 and number != sender.claim_number:
        sender.claim_number = number
        state.view.refresh()
        membership_of(state).unsaved = True


def settle(own: Membership) -> None:
    """Take another number if a member with a smaller ID has the same one. Call it before the file is saved."""
    view = own.state.view
    if view.generation == own.numbers_checked:
        return
    own.numbers_checked = int(view.generation)
    members = [peer for peer in view.peers.values() if not peer.in_handshake]
    number = view.claim_number
    if not any(peer.id < view.node_id and view.claim_number_of(peer) == number for peer in members):
        return
    taken = {int(view.claim_number_of(peer)) for peer in members}
    free = next((other for other in _after(int(number)) if other not in taken), None)
    if free is None:
        return
    own.state.host.log("notice", f"Claim number changed: number={free} was={number}, because another member has that")
    view.claim_number = free
    view.claim_refusal = _REFUSAL
    own.unsaved = True


def _after(number: int) -> list[int]:
    """All numbers, in the order in which they are tried."""
    return [*range(number + 1, NO_NODE), *range(number)]


def saved(own: Membership) -> None:
    """Give claims if everything is in the file."""
    if not own.unsaved:
        own.state.view.claim_refusal = ""
