"""Users: their passwords, what their rules allow, and failed logins."""
