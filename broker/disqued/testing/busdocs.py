"""The page docs/protocol/bus.md, made from the tables of `disqued.bus`: layout, messages, and what mixed clusters need.

`python -m disqued.testing.busdocs > docs/protocol/bus.md` writes it; a test compares. Numbers, names, sizes and places
come from the code; what only people know stands here, a line for each message: one without its line is a KeyError.
"""

from __future__ import annotations

import sys
from typing import Final

from disqued.bus import extension, kinds
from disqued.bus.frame import (
    COUNTED_BYTES,
    FAIL_BYTES,
    GOSSIP_ENTRY_BYTES,
    HEADER_BYTES,
    IP_BYTES,
    JOB_ID_FRAME_BYTES,
    MAX_FRAME_BYTES,
    MAX_UNKNOWN_BYTES,
    NODE_ID_BYTES,
    SIGNATURE,
    VERSION,
)
from disqued.core.jobs.codec import LEAST_BYTES, MAX_HOLDERS

_HEADER: Final = (
    (4, f"signature, `{SIGNATURE.decode()}`"),
    (4, "length of the whole frame"),
    (2, f"version, {VERSION}"),
    (2, "zero"),
    (2, "type"),
    (2, "gossip entries in PING, PONG and MEET, otherwise 0"),
    (NODE_ID_BYTES, "ID of the sender"),
    (IP_BYTES, "address that the sender wants to be reached at, padded with zeros; the original sends zeros"),
    (extension.EXTENSION_BYTES, "extension, see below; the original sends zeros"),
    (2, "the sender's port for clients"),
    (2, f"the sender's own flags: {kinds.NODE_MYSELF}, plus {kinds.NODE_LEAVING} while it is leaving"),
    (1, "zero"),
    (1, "message flags, see below"),
    (2, "zero"),
)

_EXTENSION: Final = (
    (2, f"marker, `{extension.MARKER.decode()}`"),
    (2, "features: what the sender understands, as bits"),
    (2, "port for the bus; 0 for the port for clients + 10000"),
    (8, "digest of `cluster-name`; zeros without one"),
    (8, "incarnation: random, new with each start, so that two nodes with one ID are told apart"),
    (8, "the sender's clock, unix milliseconds; only in PING, PONG and MEET"),
    (4, "zero"),
)

_FLAGS: Final = (
    (kinds.NOREPLY, "NOREPLY", "a REPLJOB is not to be answered"),
    (kinds.INCR_NACKS, "INCR_NACKS", "the job was queued because of a NACK: who hears of it counts one more"),
    (kinds.INCR_DELIVERIES, "INCR_DELIV", "the job was queued again: who hears of it counts one more delivery"),
    (kinds.HANDOVER, "HANDOVER", "ours: a node that leaves hands the job on, which a pause of its queue does not stop"),
)

_FEATURES: Final = (
    (extension.FEATURE_HOST, "HOST", kinds.HOST),
    (extension.FEATURE_ENOUGH, "ENOUGH", kinds.ENOUGH),
)

_PAYLOADS: Final = {
    kinds.OF_GOSSIP: f"gossip: {GOSSIP_ENTRY_BYTES} bytes for each entry",
    kinds.OF_NODE_ID: f"ID of a node ({FAIL_BYTES} bytes in all)",
    kinds.OF_JOB_ID: f"ID of a job, a number ({JOB_ID_FRAME_BYTES} bytes in all)",
    kinds.OF_JOBS: "number of jobs, their size, the jobs",
    kinds.OF_QUEUE: "a number, size of the name, name of the queue",
    kinds.OF_UNKNOWN: "the name of a host",
}

_MESSAGES: Final = {
    kinds.PING: ("every node, regularly, to one", "PONG, on the same connection; gossip of a member is taken in"),
    kinds.PONG: ("who was sent PING or MEET", "the sender is alive: suspicion and failure end"),
    kinds.MEET: ("who was told CLUSTER MEET, or heard of a node", "as PING, and the sender is added"),
    kinds.FAIL: ("who found that most nodes suspect one, to all", "the node named is flagged as failed"),
    kinds.REPLJOB: ("who takes a new job, to those that shall have a copy", "the copy is kept; GOTJOB unless NOREPLY"),
    kinds.GOTJOB: (
        "who keeps a copy, to who sent it",
        "counts for REPLICATE; the client is told when there are enough",
    ),
    kinds.ENQUEUE: (
        "who gave a job away, to one who has it",
        "the job is queued, after as many seconds as the number says",
    ),
    kinds.QUEUED: (
        "who queued a job, to those that may have it",
        "others do not queue it; of two only one keeps it queued",
    ),
    kinds.SETACK: ("who has a job acknowledged, to those that may have it", "the job is acknowledged; GOTACK"),
    kinds.WILLQUEUE: ("who will queue a job in 500 ms, to those that may have it", "QUEUED or SETACK if that is news"),
    kinds.GOTACK: (
        "who got SETACK, to its sender; the number is 1 if the job is known",
        "counts for the collection of the job",
    ),
    kinds.DELJOB: (
        "who knows that all confirmed, or FASTACK, DELJOB, to those that may have it",
        "the job is forgotten",
    ),
    kinds.NEEDJOBS: (
        "who has clients waiting, to all or those who sent jobs lately; the number says how many",
        "YOURJOBS if there are any",
    ),
    kinds.YOURJOBS: ("who has jobs queued, to who asked", "the jobs are queued there"),
    kinds.WORKING: (
        "who was told WORKING, to those that may have the job",
        "a queued copy leaves its queue, the retry time begins anew",
    ),
    kinds.PAUSE: ("PAUSE ... bcast, to all; the number is 1 in, 2 out, 3 both, 0 none", "the queue is paused alike"),
    kinds.HOST: ("a node that announces a name, to those with the feature", "the node is reached by that name"),
    kinds.ENOUGH: (
        "who asked with NEEDJOBS and has nobody waiting any more, to those with the feature",
        "the wish is forgotten",
    ),
}

_NEVER: Final = (
    ("more than 100 in a NEEDJOBS", "the original writes behind the end of an array"),
    (
        "YOURJOBS with a job that its creator still waits for copies of",
        "it would be queued while its client is told NOREPL",
    ),
    (
        "a REPLJOB whose list has neither us nor the receiver",
        "the receiver takes the job for a dummy acknowledgement, and ends at the next GOTACK(0)",
    ),
    (
        "a SETACK for an imported job to its only owner, without WILLQUEUE before",
        "the owner would collect the job by its timer and end; after the WILLQUEUE it lists the importer",
    ),
    ("job messages before both nodes have opened a connection", "the receiver does not know the sender and drops them"),
    (f"types from {kinds.HOST} on to a node without the feature", "it would write a log line for each"),
)

_HEAD: Final = """\
# The cluster bus

<!-- Generated by `python -m disqued.testing.busdocs`; change the tables in `disqued/bus` instead. -->

Nodes speak the bus protocol of Disque 1.0-rc1, version 1, over TCP, by default on the port for clients + 10000. A
cluster may mix both kinds of node. There is no authentication and no encryption: the bus belongs into a private
network.

Every node opens one connection to each other node and sends on it all that it has to say; only PONG goes back the way
the PING came. Frames for a node that has no connection are dropped: whoever needs an answer repeats what it asked.

Integers are big endian, those inside a job little endian.
"""

_READING: Final = f"""\
## Reading

* What does not begin with the signature, or is shorter than {HEADER_BYTES} or longer than {MAX_FRAME_BYTES} bytes,
  closes the link with a line in the log. So does a length that is not the one the type and the counts in the frame ask
  for. The original drops some of these frames and goes on; but a stream that lies about lengths is no stream of frames
  any more.
* A length is judged as soon as it can be: after 16 bytes for types with a fixed length and for gossip, after
  {COUNTED_BYTES} for jobs and queues. Nothing behind these bytes is stored for a frame that can not be.
* {MAX_FRAME_BYTES} bytes hold one job with the longest queue name and the longest body that clients can send.
* Frames of an unknown type or another version are ignored with a line in the log; they may be up to
  {MAX_UNKNOWN_BYTES} bytes long. So may all frames of a connection that another node opened, until one from a member
  came; nodes begin with PING or MEET.
* Frames of nodes that are not members are ignored, but for PING and MEET.
"""

_JOBS: Final = f"""\
## Jobs

A serialised job has at least {LEAST_BYTES} bytes: length of the rest (4), ID (40), state and attempts of collection
(1), flags (1), copies (2), seconds left plus one (4), creation in milliseconds times 1000000 (8), delay (4), retry (4),
NACKs (2), additional deliveries (2), name of the queue behind its length (4), body behind its length (4), IDs of the
nodes that may have the job behind their number (4), at most {MAX_HOLDERS}. The append only file has the same form, with
the time of expiry in the place of the seconds left. A job that can not be read is ignored with a line in the log.
"""

_MIXED: Final = """\
## Mixed clusters

The original does not read the bytes of the extension and sends zeros there. A node of ours finds the marker in what
another one sends, and only then, and only for the features it says it has, sends it the types that the original does
not know. Everything else is the same for both kinds. In gossip our nodes put the bus port where the original has zeros,
unless it is the port for clients + 10000.

Some messages that the protocol allows end a process of the original or confuse it. Our nodes never send:

| what | why |
|---|---|
"""


def _layout(rows: tuple[tuple[int, str], ...], begin: int) -> str:
    """A table of fields with their offsets."""
    lines = ["| offset | bytes | field |", "|---|---|---|"]
    at = begin
    for size, text in rows:
        lines.append(f"| {at} | {size} | {text} |")
        at += size
    return "\n".join(lines)


def _begin_of_extension() -> int:
    """Where the extension stands in the header."""
    at = 0
    for size, text in _HEADER:
        if text.startswith("extension"):
            return at
        at += size
    raise AssertionError("the header has an extension")


def _messages() -> str:
    """The table of messages."""
    lines = ["| type | name | payload | sent by | effect |", "|---|---|---|---|---|"]
    for kind, name in kinds.NAMES.items():
        sender, effect = _MESSAGES[kind]
        lines.append(f"| {kind} | {name} | {_PAYLOADS[kinds.PAYLOADS[kind]]} | {sender} | {effect} |")
    return "\n".join(lines)


def page() -> str:
    """The whole page."""
    assert sum(size for size, _ in _HEADER) == HEADER_BYTES
    assert sum(size for size, _ in _EXTENSION) == extension.EXTENSION_BYTES
    features = "\n".join(f"* {bit}: {name}, type {kind}" for bit, name, kind in _FEATURES)
    flags = "\n".join(f"* {bit}: {name}, {what}" for bit, name, what in _FLAGS)
    never = "\n".join(f"| {what} | {why} |" for what, why in _NEVER)
    parts = (
        _HEAD,
        f"## Header\n\n{_layout(_HEADER, 0)}\n\nMessage flags; who does not know one passes it over:\n\n{flags}\n",
        f"## Extension\n\n{_layout(_EXTENSION, _begin_of_extension())}\n\nFeatures:\n\n{features}\n",
        f"## Messages\n\n{_messages()}\n",
        _JOBS,
        _READING,
        f"{_MIXED}{never}\n",
    )
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
