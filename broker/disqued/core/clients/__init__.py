"""Connected clients: their sessions, and clients that are blocked."""
