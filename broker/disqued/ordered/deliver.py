"""DELIVER: jobs for consumers of a node that has no replica of their group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.ordered.counters import MESSAGES_REFUSED
from disqued.ordered.delivered import Delivered
from disqued.ordered.deliverypayload import unpack_deliveries
from disqued.ordered.payload import MalformedPayloadError
from disqued.ordered.room import ordered_of
from disqued.orderedqueue.encoding import Malformed

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


def handle_deliver(state: NodeState, _sender: Peer, frame: Frame) -> None:
    """Hand the jobs to the consumers of this node."""
    consumers = ordered_of(state).consumers
    try:
        for delivery in unpack_deliveries(frame.payload):
            if not delivery.data:
                consumers.rejoin(delivery.group)
                continue
            job = Delivered(delivery.assigned)
            job.fill(delivery.data, delivery.time_ms)
            consumers.delivered(delivery.group, delivery.consumer, job, delivery.number)
    except (MalformedPayloadError, Malformed):
        state.counters.add(MESSAGES_REFUSED)


MESSAGE: Final[Message] = Message(
    kinds.DELIVER,
    "DELIVER",
    kinds.OF_UNKNOWN,
    "the node that leads a group, to the node of a consumer that has no replica of the group: jobs that were assigned "
    "to the consumer; also when it begins to lead",
    "the receiver hands the jobs to its clients; or it says again how many it can take",
    handle_deliver,
    feature=kinds.FEATURE_ORDERED,
)
