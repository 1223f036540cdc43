"""The page of the cluster bus, docs/protocol/bus.md, from the tables of `disqued.bus`.

Numbers, names, sizes and offsets come from the code; the rest of the text is written here.
"""

from __future__ import annotations

from typing import Final

from disqued.bus import extension, kinds
from disqued.bus.frame import (
    COUNTED_BYTES,
    FAIL_BYTES,
    GOSSIP_ENTRY_BYTES,
    HEADER_BYTES,
    IP_BYTES,
    JOB_ID_FRAME_BYTES,
    LISTED_BYTES,
    MAX_BATCH_BYTES,
    MAX_FRAME_BYTES,
    MAX_LISTED,
    MAX_UNKNOWN_BYTES,
    MAX_UNPROVEN_BYTES,
    NODE_ID_BYTES,
    SIGNATURE,
    VERSION,
)
from disqued.core.jobs.codec import LEAST_BYTES, MAX_HOLDERS
from disqued.membership.authentication import NEEDED
from disqued.membership.authentication import VERSION as VERSION_OF_EXCHANGE
from disqued.membership.secrets import ACCEPTOR, DIALLER, MOST, NONCE_BYTES, PROOF_BYTES
from disqued.node import ROOMS
from disqued.repair.digest import CELLS

_HEADER: Final = (
    (4, f"signature, `{SIGNATURE.decode()}`"),
    (4, "length of the whole frame"),
    (2, f"version, {VERSION}"),
    (2, "zero"),
    (2, "type"),
    (2, "gossip entries in PING, PONG and MEET, otherwise 0"),
    (NODE_ID_BYTES, "ID of the sender"),
    (IP_BYTES, "announced address of the sender, padded with zeros; the original sends zeros"),
    (extension.EXTENSION_BYTES, "extension, see below; the original sends zeros"),
    (2, "the sender's port for clients"),
    (2, f"the sender's own flags: {kinds.NODE_MYSELF}, plus {kinds.NODE_LEAVING} while it is leaving"),
    (1, "zero"),
    (1, "message flags, see below"),
    (2, "zero"),
)

_EXTENSION: Final = (
    (2, f"marker, `{extension.MARKER.decode()}`"),
    (2, "features that the sender supports, as bits: the lower 16"),
    (2, "port for the bus; 0 for the port for clients + 10000"),
    (8, "digest of `cluster-name`; zeros without one"),
    (8, "incarnation: random, new at each start; distinguishes two nodes with the same ID"),
    (8, "the sender's clock, unix milliseconds; only in PING, PONG and MEET"),
    (2, "port for clients with TLS; 0 for none"),
    (2, "further features, the higher 16 bits"),
)

_FLAGS: Final = (
    (kinds.NOREPLY, "NOREPLY", "the receiver does not reply to a REPLJOB"),
    (kinds.INCR_NACKS, "INCR_NACKS", "the job was queued because of a NACK: receivers count one more NACK"),
    (kinds.INCR_DELIVERIES, "INCR_DELIV", "the job was requeued: receivers count one more delivery"),
    (kinds.TRANSFER, "TRANSFER", "ours: the job is not new, and is taken even if its queue is paused"),
    (kinds.REPAIRED, "REPAIRED", "ours: a lost copy is made again, and the receiver confirms it to all holders"),
    (
        kinds.LIST_ONLY,
        "LIST_ONLY",
        "ours, 16 and 1: only the list of holders is meant; a node without the job keeps none",
    ),
)

_PAYLOADS: Final = {
    kinds.OF_GOSSIP: f"gossip: {GOSSIP_ENTRY_BYTES} bytes for each entry",
    kinds.OF_NODE_ID: f"ID of a node ({FAIL_BYTES} bytes in all)",
    kinds.OF_JOB_ID: f"ID of a job, a number ({JOB_ID_FRAME_BYTES} bytes in all)",
    kinds.OF_JOBS: "number of jobs, their size, the jobs; to nodes with feature 128, attributes follow a job "
    "that has any, as in the [append-only file](aof.md#loadjob)",
    kinds.OF_JOB_IDS: f"number of jobs, size of the rest, {LISTED_BYTES} bytes for each: ID of a job, a number",
    kinds.OF_QUEUE: "a number, size of the name, name of the queue",
}
_OTHER_PAYLOADS: Final = {
    kinds.HOST: "the name of a host",
    kinds.EXTERNAL: "host:port, or host:port@tls-port; empty for none",
    kinds.QUERY: "number (4); requests as of clients: user and `password` or `none`, then the commands",
    kinds.RESULT: "number of the QUERY (4); the replies as to clients",
    kinds.SETTINGS: "entries: kind (1); 1 if removed, otherwise 0 (1); version (8); ID of the node that changed it "
    "(40); lengths of name, key and value (2 each); name; key; value",
    kinds.SETTINGSDIGEST: "the sum, modulo 2^64, of the BLAKE2b-64 of each entry as in SETTINGS (8)",
    kinds.COUNTASK: "number of the question (4); what is asked: 1 for jobs, 2 for those that a purge deleted (1); "
    "version of the mark of the purge, otherwise 0 (8); name of the queue",
    kinds.COUNTED: "number of the question (4); figures (8 each): jobs that are queued, leased, delayed and dead; or "
    "one, jobs that were deleted",
    kinds.REDRIVE: "words, each with its length (4): grant, report or cancel; queue; target; glob for reasons; age in "
    "seconds; start of the task in unix milliseconds; jobs granted, moved, left, failed",
    kinds.JOBASK: "up to 100 job IDs (40 each)",
    kinds.JOBTOLD: "up to 100 times: job ID (40), fate",
    kinds.SETREC: "job ID (40); number of nodes that may have the job (4); for how many seconds the record is kept "
    "(4); fate",
    kinds.ZONE: "the name of a zone",
    kinds.DIGEST: f"unix milliseconds (8); {CELLS} cells (8 each): for jobs created before that time, the XOR of the "
    f"BLAKE2b-64 of their IDs; the cell is that hash modulo {CELLS}",
    kinds.CELL: "unix milliseconds as in the DIGEST (8); number of the cell (2); 1 for an answer (1); IDs of jobs (40 "
    "each)",
    kinds.DATAID: "data ID of the node (20); its free memory in bytes (8)",
    kinds.LOGENTRY: "job ID (40); claim (8); sequence number (4); unix milliseconds (8); purpose (1): 0 an "
    "entry of the past, 1 a new one, 2 the last one of the past; entry",
    kinds.GOTENTRY: "job ID (40); claim (8); sequence number (4); outcome (1): 0 has it, 1 has another one, "
    "2 has no room, 3 the claim is stale, 4 does not have the job, 5 that were all entries",
    kinds.LOGASK: "job ID (40)",
    kinds.CLAIMED: "ID of a job (40); its claim, 0 for none (8); line of progress",
    kinds.TOKENBITS: "a number, 0 to 65534, in decimal digits",
    kinds.RUNS: "items: meaning (1): 1 the sender wants to start the run, 2 it does not any more, 3 the run is "
    "granted, 4 it is over; the time of the run in unix milliseconds (8); ID of the node that may start it (40); "
    "length of the name (2); name of the schedule",
    kinds.TOKENASK: "the time of the question in milliseconds, greater than before (8); number of the last grant that "
    "the sender has counted (4); how many deliveries it could make with more tokens (4); how many tokens it has (4), "
    "and gives back (4); how many jobs in flight it delivered (4), and in how many milliseconds the last of them is "
    "queued again or expires (4); for how many milliseconds its part of the limits has belonged to the receiver alone, "
    "all bits set if it does not (4); the newest stamp of the receiver, 0 for none (8): it gives that part for a "
    "second from then; name of the queue",
    kinds.TOKENS: "the time in the question, 0 for none (8); a stamp: the time on the clock of the sender (8); number "
    "of the grant (4); how many tokens (4); why there are not more: 1 the rate, 2 the jobs in flight, 3 no member has "
    "given the sender its part (1); 1 if the receiver must report (1); name of the queue",
    kinds.RAFT: "for each group: identity of the log of the sender (8) and of the receiver (8); length (4); messages, "
    "as `disqued.raft.codec` encodes them",
    kinds.BEAT: "identity of the log of the sender (8); identity of the catalog that it knows, zeros for none (16); "
    "version of the catalog (8); 1 if it has a replica of group 0 (1)",
    kinds.CATALOG: "identity of the catalog (16); length of the members of group 0 (2); these members; the catalog, in "
    "JSON",
    kinds.CATALOGASK: "none",
    kinds.PROPOSE: "for each request: its number (8); group (4); kind: 0 a command, 1 a question, 2 a ping (1); "
    "length (4); data",
    kinds.PROPOSED: "for each answer: number of the request (8); 0 done, 1 the sender does not lead, 2 refused, 3 "
    "unknown (1); length (4); the result, the ID of the leader, or the error",
    kinds.DELIVER: "for each job: group (4); number of the assignment (8); index (8); claim (8); end of the lease (8) "
    "and time of the assignment (8) in unix milliseconds; NACKs (8); additional deliveries (8); length of the consumer "
    "(2) and of the entry that added the job, 0 if the sender only begins to lead (4); both",
    kinds.FOUND: "0 the question, 1 its answer, 2 another node asks, 3 begin, 4 begun (1); number (8); identity of the "
    "catalog (16) and of the log of the sender (8), zeros for none; length of the members of group 0 (2); the members",
    kinds.RAFTSNAP: "for each part: group (4); number of the transfer (8); 0 an offer, 1 a request, 2 a part of the "
    "state, 3 entries, 4 the end, 5 unknown (1); position (8); next position (8); length (4); data",
    kinds.PATTERNS: "up to 64 patterns, each with its length (2)",
    kinds.CHALLENGE: f"version of the exchange, {VERSION_OF_EXCHANGE} (4); nonce ({NONCE_BYTES})",
    kinds.RESPONSE: f"number of proofs (4); nonce ({NONCE_BYTES}); the proofs ({PROOF_BYTES} each)",
    kinds.PROOF: f"proof ({PROOF_BYTES})",
}
"""Payloads of the types that are `kinds.OF_UNKNOWN` to the reader of frames."""

_NEVER: Final = (
    ("a NEEDJOBS for more than 100 jobs", "the original writes beyond the end of an array"),
    (
        "YOURJOBS with a job that still waits for copies",
        "the job would be queued while its client gets NOREPL",
    ),
    (
        "a REPLJOB that lists neither the sender nor the receiver",
        "the receiver treats the job as a dummy acknowledgement, and crashes at the next GOTACK(0)",
    ),
    (
        "a SETACK for an imported job to its only holder, without a WILLQUEUE before",
        "the holder would collect the job by its timer and crash; after a WILLQUEUE it lists the importer",
    ),
    ("a REPLJOB with more than one job, to a node without GOTJOBS", "the original ignores it"),
    ("job messages before both nodes have opened a connection", "the receiver does not know the sender and drops them"),
    (
        f"types from {kinds.HOST} on, except for those of the authentication, to a node without the feature",
        "the original writes a log line for each",
    ),
)

_HEAD: Final = """\
# The cluster bus

<!-- Generated by `make docs`; change the tables in `disqued/bus` instead. -->

Nodes speak the bus protocol of Disque 1.0-rc1, version 1, over TCP, by default on the port for clients + 10000. A
cluster may mix disqued nodes and nodes of the original. With a secret of the cluster, nodes authenticate each
connection. With `tls-cluster`, all of this is inside of TLS with certificates of both nodes. Without both, keep the bus
in a private network: see [security of the bus](../operations/bus-security.md).

Every node opens one connection to each other node and sends all its frames on it; only a PONG is sent on the connection
of its PING. Frames for a node without a connection are dropped: a node that needs a reply repeats its request.

Integers are big-endian, those inside a job little-endian.
"""

_AUTHENTICATION: Final = f"""\
## Authentication

With `cluster-secret-file`, a connection begins with three frames, all on the same connection. Lengths are in bytes.

1. The node that opened it sends CHALLENGE with a random nonce.
2. The other node replies RESPONSE with its own nonce, and a proof for each of its secrets, at most {MOST}. The number 0
   says that it has no secret. {NEEDED} says that it needs a CHALLENGE first.
3. If one of the proofs was made with one of its secrets, the first node sends PROOF, made with the same secret.

A proof is the HMAC-SHA-256 with the secret over the text `{ACCEPTOR.decode()}` in RESPONSE or `{DIALLER.decode()}` in
PROOF, the nonces of the first and of the other node, and the IDs of the first and of the other node. The IDs are the
senders of the frames. Nodes with a secret ignore other frames before PROOF, or close the connection. With
`cluster-secret-required no`, the first node sends PING or MEET together with CHALLENGE, and again after PROOF. The
types are sent to all nodes; the original ignores them.
"""

_READING: Final = f"""\
## Reading

* A frame without the signature, shorter than {HEADER_BYTES} or longer than {MAX_FRAME_BYTES} bytes closes the link with
  a log line. So does a length that does not match the type and the counts of the frame. The original drops some of
  these frames and continues, but a stream with a wrong length can no longer be split into frames.
* The length is checked as early as possible: after 16 bytes for types with a fixed length and for gossip, after
  {COUNTED_BYTES} for jobs, lists of job IDs and queues. No more of an invalid frame is stored.
* A list of job IDs has at most {MAX_LISTED} entries, so that one frame does not hold the event loop.
* {MAX_FRAME_BYTES} bytes hold one job with the longest queue name and the longest body that clients can send.
* Frames of an unknown type or another version are ignored with a log line; they may be up to {MAX_UNKNOWN_BYTES} bytes
  long. The same limit applies to all frames of a connection that does not belong to a member, and
  {MAX_UNPROVEN_BYTES} bytes before PROOF if the receiver requires a secret.
* A connection belongs to the node whose PING or MEET was admitted first on it; nodes start with one of them. A frame of
  another node closes the connection. On a connection that a node opened itself, only PONG counts.
* A disqued node skips a frame with jobs or a queue name, while it arrives, if there is no memory for it. It reads a
  YOURJOBS of up to {MAX_BATCH_BYTES} bytes in any case, because its sender keeps no copy of at-most-once jobs.
* Frames of nodes that are not members are ignored, except for PING and MEET. Gossip is sent to members only.
"""

_JOBS: Final = f"""\
## Jobs

A serialised job has at least {LEAST_BYTES} bytes: length of the rest (4), ID (40), state and number of collection
attempts (1), flags (1), copies (2), seconds left plus one (4), creation in milliseconds times 1000000 (8), delay (4),
retry (4), NACKs (2), additional deliveries (2), length (4) and name of the queue, length (4) and body, number (4) and
IDs of the nodes that may have the job, at most {MAX_HOLDERS}. The append-only file has the same format, with the expiry
time instead of the seconds left. A job that cannot be decoded is ignored with a log line.
"""

_FATES: Final = """\
## Fates

A fate says what a node knows about the end of a job. Its integers are little endian: outcome (1; 0 unknown, 1 waiting,
2 done, 3 dead, 4 moved, 5 expired, 6 deleted), end in unix milliseconds (8), claim (8), number of moves that led to the
job (4), copies while it waits (2), 1 if there is a successor, otherwise 0 (1), length of the result, 4294967295 if
there is none (4), ID of the successor (0 or 40), result.
"""

_MIXED: Final = """\
## Mixed clusters

The original ignores the bytes of the extension and sends zeros there. A disqued node sends the types that the original
does not know only to nodes whose frames have the marker, and only for the features that they announce. Everything else
is the same. In gossip, disqued nodes send the bus port where the original has zeros, unless it is the port for
clients + 10000.

Some messages that the protocol allows crash or confuse the original. A disqued node never sends:

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
    """The offset of the extension in the header."""
    at = 0
    for size, text in _HEADER:
        if text.startswith("extension"):
            return at
        at += size
    raise AssertionError("the header has an extension")


def _messages() -> str:
    """The table of messages."""
    lines = ["| type | name | payload | sent by | effect |", "|---|---|---|---|---|"]
    for message in sorted(ROOMS.messages, key=lambda message: message.number):
        payload = _OTHER_PAYLOADS.get(message.number) or _PAYLOADS[message.payload]
        lines.append(f"| {message.number} | {message.name} | {payload} | {message.sent_by} | {message.effect} |")
    return "\n".join(lines)


def page() -> str:
    """The whole page."""
    assert sum(size for size, _ in _HEADER) == HEADER_BYTES
    assert sum(size for size, _ in _EXTENSION) == extension.EXTENSION_BYTES
    features = "\n".join(
        f"* {message.feature}: {message.name}, type {message.number}"
        for message in sorted(ROOMS.messages, key=lambda message: message.number)
        if message.feature
    )
    features += f"\n* {kinds.FEATURE_AFTER}: the attribute AFTER of jobs that wait for others"
    flags = "\n".join(f"* {bit}: {name}, {what}" for bit, name, what in _FLAGS)
    never = "\n".join(f"| {what} | {why} |" for what, why in _NEVER)
    parts = (
        _HEAD,
        f"## Header\n\n{_layout(_HEADER, 0)}\n\nMessage flags; nodes ignore those that they do not know:\n\n{flags}\n",
        f"## Extension\n\n{_layout(_EXTENSION, _begin_of_extension())}\n\nFeatures:\n\n{features}\n",
        f"## Messages\n\n{_messages()}\n",
        _JOBS,
        _FATES,
        _AUTHENTICATION,
        _READING,
        f"{_MIXED}{never}\n",
    )
    return "\n".join(parts)
