"""Disque, complete, in Python: broker, client and command line.

Rooms and what each may import are described in docs/architecture.
"""

__version__ = "0.1.0"
