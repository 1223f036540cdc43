"""The queue machine: the state of one ordered queue, which the entries of its Raft log change.

Every replica of a queue applies the same entries in the same order, so every replica has the same state. The package is
pure: it has no I/O, no clock and no randomness. It knows nothing about Raft except that an entry has an index, a time
and data. It has no bodies: those stay in the log, at the index of the entry that added the job.
"""
