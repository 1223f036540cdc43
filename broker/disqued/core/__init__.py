"""What all rooms share: one package each for jobs, queues, timers, clients, the cluster, output and more.

Nothing here handles a bus message, reads a clock, draws random numbers of its own, or uses a socket or a file: time and
random numbers are arguments. The first line of each package says what it holds, and `.importlinter` says which package
may import which. Only `runtime`, at the top, knows the state of a node. The modules on the hot path are plain typed
Python that mypyc also compiles.
"""
