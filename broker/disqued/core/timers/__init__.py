"""Wake times: a timer wheel, and what can be armed on it."""
