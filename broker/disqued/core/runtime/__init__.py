"""The state of one node and what every room needs of it: sending frames, blocking clients, memory limits, shutdown.

The top of the core: everything here works on `NodeState`, which no other package of the core knows.
"""
