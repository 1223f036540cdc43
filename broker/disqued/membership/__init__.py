"""Knows who is in the cluster: this node's identity and its place.

Identity, address, leaving and their file belong here. What a job or a queue is does not: CLUSTER RESET forgets them
through the core, and which nodes get copies is decided elsewhere from the view this room keeps.
"""

from disqued.core.subsystem import Subsystem
from disqued.membership import commands, hello

SUBSYSTEM = Subsystem("membership", (commands.COMMAND, hello.COMMAND))
