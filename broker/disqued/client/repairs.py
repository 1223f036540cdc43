"""The calls about lost copies of jobs: CLUSTER REPAIR. `calls` describes what a call is.

Both may be repeated: one reads, and a second search for lost copies, also at another node, changes nothing.
"""

from __future__ import annotations

from disqued.client import replies
from disqued.client.calls import Call
from disqued.client.values import RepairStatus


def repair_status() -> Call[RepairStatus]:
    """Return whether jobs of the node have lost copies, and how far the repair is (CLUSTER REPAIR STATUS).

    It says so for the node that this client uses, and only for jobs that have a copy there. Nodes of the original and
    of release 0.1 refuse the command.
    """
    return Call(("CLUSTER", "REPAIR", "STATUS"), replies.repair_status, repeat=True)


def repair_now() -> Call[str]:
    """Have the node that this client uses look for lost copies now (CLUSTER REPAIR NOW). Returns `OK` at once.

    The node looks at all its jobs, and compares them with those of each other node. It does so by itself when a node
    comes back without its jobs, fails or is removed.
    """
    return Call(("CLUSTER", "REPAIR", "NOW"), replies.text, repeat=True)
