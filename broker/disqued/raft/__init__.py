"""The core of Raft for one group: elections, replication and membership, without I/O, clock or chance.

A driver passes messages, time and completed writes to a `Group` and carries out the batches that it returns. The node
runs thousands of groups, so a group that is idle sends nothing and has no deadline.
"""
