"""The asyncio shell: moves bytes, files, signals and time between the operating system and a node.

No rule about jobs belongs here. The modules `connection`, `peerlink` and `shell` are on the hot path and are compiled
with the core.
"""
