"""The types of bus frames and the flags in them, as numbers on the wire (Disque cluster bus protocol, version 1).

Numbers up to 15 are the original's. Those from 32 on are ours: they are sent only to nodes whose header announces that
they know them (`extension`), so that clusters may mix both kinds of node. What a message is (its name, its payload, its
senders, its effect) is declared by the room that handles it, as a row (`core.runtime.message`).
"""

from __future__ import annotations

from typing import Final

PING: Final = 0
PONG: Final = 1
MEET: Final = 2
FAIL: Final = 3
REPLJOB: Final = 4
GOTJOB: Final = 5
ENQUEUE: Final = 6
QUEUED: Final = 7
SETACK: Final = 8
WILLQUEUE: Final = 9
GOTACK: Final = 10
DELJOB: Final = 11
NEEDJOBS: Final = 12
YOURJOBS: Final = 13
WORKING: Final = 14
PAUSE: Final = 15
HOST: Final = 32
"""The name of the host of the sender."""
ENOUGH: Final = 33
"""Cancels a NEEDJOBS: no client waits there any more."""
SETACKS: Final = 34
GOTACKS: Final = 35
DELJOBS: Final = 36
GOTJOBS: Final = 37
"""SETACK, GOTACK, DELJOB and GOTJOB about many jobs."""
QUERY: Final = 38
RESULT: Final = 39
"""Commands that only read, which one node runs for the console of another, and their replies."""
ZONE: Final = 40
"""The zone of the sender."""
EXTERNAL: Final = 41
"""The address of the sender for clients outside of the network of the nodes."""
JOBASK: Final = 42
JOBTOLD: Final = 43
"""Questions about the ends of jobs, and the answers."""
POSTPONE: Final = 44
"""A job that a worker gave back must not be queued before some time."""
SETTINGS: Final = 45
SETTINGSDIGEST: Final = 46
"""Settings of queues, and the digest of all that the sender has."""
REDRIVE: Final = 47
"""What a REDRIVE grants a node, and what the node reports."""
CHALLENGE: Final = 48
RESPONSE: Final = 49
PROOF: Final = 50
"""Authentication of a new connection with the secret of the cluster, before anything else is sent on it."""
COUNTASK: Final = 51
COUNTED: Final = 52
"""How many jobs of a queue wait on the receiver, and the answer."""
QUEUENAME: Final = 53
PATTERNS: Final = 54
"""A queue with jobs that matches a pattern of the receiver, and the patterns that clients of the sender wait for."""
SETREC: Final = 55
"""SETACK with what is known about the end of the job."""
LOGENTRY: Final = 56
GOTENTRY: Final = 57
LOGASK: Final = 58
"""An entry of the progress log of a job, that the sender has it, and the wish for all entries."""
CLAIMED: Final = 59
"""The claim under which a worker has a job, and its line of progress."""
DATAID: Final = 60
"""Which jobs the sender may have (its data ID), and its free memory."""
DIGEST: Final = 61
CELL: Final = 62
"""What two nodes compare to find lost copies: a digest of the jobs that both should have, and IDs of these jobs."""
TOKENBITS: Final = 63
"""The number of the sender in its claims."""
RUNS: Final = 66
"""The wish of a node to start runs of schedules, and the answers."""
TOKENASK: Final = 64
TOKENS: Final = 65
"""What a node needs to deliver jobs of a queue with limits, and what the rate home of the queue grants."""
RAFT: Final = 67
BEAT: Final = 68
CATALOG: Final = 69
CATALOGASK: Final = 70
PROPOSE: Final = 71
PROPOSED: Final = 72
DELIVER: Final = 73
FOUND: Final = 74
RAFTSNAP: Final = 75
"""Ordered queues: messages of their groups, signs of life, which queues there are, requests to the leaders of groups,
their answers, jobs for the clients of a node without a replica, the founding of the catalog, and snapshots."""
LISTS: Final = {SETACK: SETACKS, GOTACK: GOTACKS, DELJOB: DELJOBS, GOTJOB: GOTJOBS}
"""The types of messages about one job that a node sends as one message about many, to nodes with the feature."""
FEATURE_LISTS: Final = 4
"""Understands SETACKS, GOTACKS and DELJOBS, and DROPPED in a GOTACK."""
FEATURE_COPIES: Final = 8
"""Understands a REPLJOB with many jobs, and GOTJOBS."""
FEATURE_ATTRIBUTES: Final = 128
"""Understands attributes behind the jobs in a REPLJOB and a YOURJOBS, and POSTPONE."""
FEATURE_FATES: Final = 4096
"""Understands JOBASK, JOBTOLD and SETREC, and NOT_DONE in a DELJOB."""
FEATURE_REPAIR: Final = 32768
"""Understands DATAID, DIGEST and CELL, and REPAIRED and LIST_ONLY in a REPLJOB."""
FEATURE_LOGS: Final = 8192
"""Understands LOGENTRY, GOTENTRY and LOGASK."""
FEATURE_CLAIMS: Final = 16384
"""Understands CLAIMED, TOKENBITS, and INCR_DELIVERIES in a POSTPONE."""
FEATURE_AFTER: Final = 65536
"""Understands the attribute AFTER, and that the job waits for its parents."""
FEATURE_SCHEDULES: Final = 262_144
"""Fires schedules, and understands RUNS."""
FEATURE_ORDERED: Final = 524_288
"""Understands the messages of ordered queues."""
FEATURE_TOKENS: Final = 131_072
"""Understands TOKENASK and TOKENS, and delivers jobs of queues with limits only with tokens."""

UNKNOWN: Final = 0
KNOWN: Final = 1
DROPPED: Final = 2
"""The number in a GOTACK: the sender does not know the job, has it, or had it and was its only other holder, so that it
has dropped it already. DROPPED is ours."""

NOT_DONE: Final = 1
"""The number in a DELJOB, ours: the job was deleted or is not added after all, but nobody acknowledged it."""

HAD: Final = 1
RACED: Final = 2
"""The number in a GOTJOB, ours: the sender had the job before, added by another node long ago, or a moment ago."""

OF_UNKNOWN: Final = 0
OF_GOSSIP: Final = 1
OF_NODE_ID: Final = 2
OF_JOB_ID: Final = 3
OF_JOBS: Final = 4
OF_QUEUE: Final = 5
OF_JOB_IDS: Final = 6
"""Kinds of payload: unknown, gossip entries, a node ID, a job ID, jobs, a queue name, or job IDs."""

KINDS: Final = 128
"""The number of types, known and reserved; a power of two."""

NOREPLY: Final = 1
INCR_NACKS: Final = 2
INCR_DELIVERIES: Final = 4
TRANSFER: Final = 8
REPAIRED: Final = 16
"""Message flags. The last two are ours, and the original ignores them. TRANSFER: the job is not new, because a leaving
node transfers it or a lost copy is made again, so REPLJOB and ENQUEUE are not refused if the input of its queue is
paused. In a WILLQUEUE: the sender was given the job by a node that had it queued. REPAIRED: a lost copy is made again,
so the receiver sends GOTJOB to all holders."""
LIST_ONLY: Final = NOREPLY | REPAIRED
"""Both in one REPLJOB: a longer list of holders, for a node that has the job. One that does not keeps no copy."""

NODE_PFAIL: Final = 1
NODE_FAIL: Final = 2
NODE_MYSELF: Final = 4
NODE_HANDSHAKE: Final = 8
NODE_NOADDR: Final = 16
NODE_MEET: Final = 32
NODE_DELETED: Final = 64
NODE_LEAVING: Final = 128
"""Node flags, in headers and in gossip."""
