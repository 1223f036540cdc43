"""Turns client bytes into requests and replies into bytes.

Here belong the wire format and its limits. What a command means does not: nothing here knows a job or a queue.
"""
