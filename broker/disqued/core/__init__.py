"""What all rooms share: jobs, queues, timers, clients, the cluster and the output of one node, one package for each.

Nothing here knows a bus message, reads a clock, draws a random number of its own or touches a socket or file: time and
random numbers are arguments. Each package says in its first line what it holds; `.importlinter` says which may import
which, and only `runtime`, at the top, knows the state of a node. The modules on the hot path are plain typed Python
that mypyc also compiles.
"""
