"""Places copies of a job on other nodes: which nodes get them, and how they are asked. Rooms share it."""
