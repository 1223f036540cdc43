"""Queries: commands that only read, which a member runs for the console of another member.

Each node answers for itself, so the console of one node can show the whole cluster. A query needs no credentials of its
own, because the bus connects members only. It names the user of the console, and the member applies the rules that this
user has there.
"""

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.core.runtime.subsystem import Subsystem
from disqued.queries.answering import handle_query
from disqued.queries.room import FEATURE_QUERY, NAME, QueriesRoom, handle_result

SUBSYSTEM = Subsystem(
    NAME,
    QueriesRoom,
    messages=(
        Message(
            kinds.QUERY,
            "QUERY",
            kinds.OF_UNKNOWN,
            "a node with an open console, once a second and when the page lists jobs, to nodes with the feature",
            "RESULT with the replies",
            handle_query,
            feature=FEATURE_QUERY,
        ),
        Message(
            kinds.RESULT,
            "RESULT",
            kinds.OF_UNKNOWN,
            "the receiver of QUERY, to its sender",
            "the console shows the replies",
            handle_result,
            feature=FEATURE_QUERY,
        ),
    ),
)
