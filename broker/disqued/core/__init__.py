"""Owns memory and wake times: jobs, queues, timers, waiting clients and the verbs that change them.

Nothing here knows a bus message, reads a clock, draws a random number of its own or touches a socket or file: time and
chance come in as arguments. The modules on the hot path are plain typed Python that mypyc also compiles.
"""
