"""Makes the page for Prometheus of what the rooms count, and the reference page of it.

Each metric is declared once, as a row beside what it counts (`metrics.py` of the rooms). Here they are put together,
read and written, within bounds: a page of many queues is made in small pieces.
"""
