"""The subcommands that are not commands of the server; each module has `run(options)`."""
