"""Helpers that tests share; nothing here is shipped."""
