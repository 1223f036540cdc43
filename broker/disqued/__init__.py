"""Disque, complete, in Python: broker, client and command line.

Rooms and what each may import are described in docs/architecture.
"""

__version__ = "0.2.0"

SPOKEN_VERSION = "1.0-rc1"
"""The version of Disque whose commands this server speaks: what tools and clients compare."""
