"""The metrics page for Prometheus, and its reference page.

Each subsystem declares its metrics once, as rows in its `metrics.py`. This package combines, reads and formats them. A
page of many queues is generated in small parts, so the event loop is not blocked.
"""
