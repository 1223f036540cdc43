"""Shared code of the end-to-end tests: API client, clusters, brokers, load and its account. Not shipped."""
