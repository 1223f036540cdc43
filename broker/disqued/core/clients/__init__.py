"""Connected clients: their sessions, and the commands that block."""
