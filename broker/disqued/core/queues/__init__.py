"""Queues: the order of the waiting jobs, and the clients that wait for jobs."""
