"""Releases: their versions, and what is built for them."""
