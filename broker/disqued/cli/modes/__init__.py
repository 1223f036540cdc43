"""The modes that options select instead of a command; each module has `run(endpoint, options)`."""
