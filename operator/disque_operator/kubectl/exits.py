"""Exit statuses of `kubectl disque`, with the numbers of `disque`; `--help` and the documentation show this table."""

from __future__ import annotations

from disqued.cli.exits import ExitStatus


class Exit(ExitStatus):
    """The exit statuses of `kubectl disque`."""

    OK = 0, "success"
    REFUSED = 1, "request rejected, timed out, or cluster not Ready (status)"
    USAGE = 2, "unknown option or invalid argument"
    CONNECTION = 3, "cannot connect to Kubernetes or to a node"
    INTERRUPTED = 130, "interrupted by Ctrl-C"
