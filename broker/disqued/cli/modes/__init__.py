"""What `disque` does instead of running a command: each module has one `run(endpoint, options)`."""
