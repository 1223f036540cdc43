"""Numbers about a node: counters, histograms, the rows of metrics, the slow log and the latency monitor.

Nothing here knows what is counted.
"""
