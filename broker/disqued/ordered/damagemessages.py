"""The messages between a node with a damaged replica and the other replicas of the group.

| sender | what | message |
| --- | --- | --- |
| the node, with each beat | the replica is out of service | PREVOTE with index 0, log_term: the number of the damage |
| the leader | the replica is no member any more | the same with flag |

No replica in service asks for pre-votes with an empty log: a learner does not ask, and a voter has a snapshot at least.
The number of the damage is drawn by chance, so an answer about an earlier damage of the same replica says nothing.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.raft.message import PREVOTE, Message


def out_of_service(replica: bytes, other: bytes, term: i64, number: i64) -> Message:
    """Say that a replica is out of service. It may have led the term before this one."""
    message = Message(PREVOTE, replica, other, term)
    message.log_term = number
    return message


def is_out_of_service(message: Message) -> bool:
    """Whether a message says that the replica that sends it is out of service."""
    return message.kind == PREVOTE and message.index == 0 and not message.flag


def removal(told: Message, term: i64) -> Message:
    """Answer as the leader of a term that the damaged replica is no member any more."""
    message = Message(PREVOTE, told.to, told.sender, term)
    message.log_term = told.log_term
    message.flag = True
    return message


def is_removal(message: Message) -> bool:
    """Whether a message says that the replica that gets it is no member any more."""
    return message.kind == PREVOTE and message.index == 0 and message.flag
