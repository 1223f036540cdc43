"""The node with a fake world: virtual time, seeded chance, files in memory.

Tests and simulations drive the same object as the server does; nothing here is imported by it.
"""
