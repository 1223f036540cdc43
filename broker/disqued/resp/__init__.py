"""The client protocol, RESP: parses requests, encodes replies, reads replies.

The package knows the wire format and its limits, but no commands, jobs or queues.
"""
