"""CLAIMED: a node tells the other holders of a job under which claim a worker has it, and its line of progress.

The payload is the ID of the job (40 bytes), the claim (8 bytes), 0 for none, and the line, empty for none.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.attributes import MAX_NOTE_BYTES
from disqued.core.jobs.claims import MOST
from disqued.core.jobs.job import ACKED, NOBODY, Job
from disqued.core.jobs.jobid import JOB_ID_BYTES
from disqued.core.runtime.claiming import learn_claim, take_note
from disqued.core.runtime.message import Message
from disqued.core.runtime.outbox import send
from disqued.core.runtime.state import NodeState

_NOTE_AT: Final = JOB_ID_BYTES + 8


def tell_claim(state: NodeState, job: Job, claim: i64, note: bytes) -> None:
    """Tell the other holders that know claims."""
    state.holders.complete(job, state.view)
    frame = b""
    for node_id in job.delivered or NOBODY:
        peer = state.view.peers.get(node_id)
        if peer is not None and peer.features & kinds.FEATURE_CLAIMS:
            if not frame:
                frame = state.bus.other(kinds.CLAIMED, job.id + int(claim).to_bytes(8, "big") + note)
            send(state, peer, frame)


def handle_claimed(state: NodeState, _peer: Peer, frame: Frame) -> None:
    """Note the claim and the line of progress. A message about a job that is not here, or is done, is ignored."""
    payload = frame.payload
    if not _NOTE_AT <= len(payload) <= _NOTE_AT + MAX_NOTE_BYTES:
        return
    job = state.lifecycle.table.get(payload[:JOB_ID_BYTES])
    if job is None or job.state == ACKED:
        return
    claim = int.from_bytes(payload[JOB_ID_BYTES:_NOTE_AT], "big")
    if 0 < claim <= MOST:
        learn_claim(state, job, claim)
    if len(payload) > _NOTE_AT:
        take_note(state, job, payload[_NOTE_AT:])


MESSAGE: Final[Message] = Message(
    kinds.CLAIMED,
    "CLAIMED",
    kinds.OF_UNKNOWN,
    "a node that got WORKING with a claim or a line of progress, to the other holders with the feature",
    "the receiver refuses workers with smaller claims",
    handle_claimed,
    feature=kinds.FEATURE_CLAIMS,
)
