"""Knows who is in the cluster: this node's identity and its place.

Identity, address, leaving and their file belong here. What a job or a queue is does not: CLUSTER RESET forgets them
through the core, and which nodes get copies is decided elsewhere from the view this room keeps.
"""

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.core.runtime.subsystem import Subsystem
from disqued.membership import commands, hello, hostname
from disqued.membership.failure import hear_fail
from disqued.membership.hearing import hear_ping, hear_pong
from disqued.membership.metrics import METRICS
from disqued.membership.room import NAME, MembershipRoom

SUBSYSTEM = Subsystem(
    NAME,
    MembershipRoom,
    (commands.COMMAND, hello.COMMAND),
    (
        Message(kinds.PING, from_anyone=hear_ping),
        Message(kinds.MEET, from_anyone=hear_ping),
        Message(kinds.PONG, from_anyone=hear_pong),
        Message(kinds.FAIL, hear_fail),
        Message(kinds.HOST, hostname.hear),
    ),
    info=commands.figures,
    metrics=METRICS,
)
