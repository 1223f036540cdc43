"""Hostile clients: fuzzers for the ports of a node and for the files that it reads (fuzz/README.md)."""
