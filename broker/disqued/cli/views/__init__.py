"""Subcommands that are not commands of the server: each module has one `run(options)`."""
