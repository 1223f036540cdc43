"""What a command is, and what a node counts of it."""
