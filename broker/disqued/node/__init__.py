"""The node: composes the rooms into one object with few methods.

`rooms` lists what a node is made of, `requests` runs what clients send, `frames` handles what other nodes send, and
`node` has the verbs that the drivers call.
"""

from disqued.node.node import Node
from disqued.node.rooms import ROOMS, Rooms

__all__ = ["ROOMS", "Node", "Rooms"]
