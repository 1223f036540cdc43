"""The command line of the fuzzers: `make fuzz`, or `python -m fuzz --help`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from disqued.build import COMPILED
from fuzz import bytestreams, commands, crowd
from fuzz.ports import TARGETS
from fuzz.victim import Violation

_INPUTS: Final = 1_000_000
_REQUESTS: Final = 40_000
_CLIENTS: Final = 4000
_ROUNDS: Final = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run some fuzzers one after the other. Returns the exit status: 1 if one found something."""
    options = _parser().parse_args(arguments)
    names = options.names or ["commands", *TARGETS, "crowd"]
    print(f"{'Compiled' if COMPILED else 'Interpreted'} build, seed {options.seed}")
    each = options.inputs // len(TARGETS)
    runs: dict[str, Callable[[], str]] = {
        "commands": partial(commands.run, options.requests, options.seed),
        **{name: partial(bytestreams.run, name, each, options.seed) for name in TARGETS},
        "crowd": partial(crowd.run, options.clients, _ROUNDS),
    }
    found = 0
    for name in names:
        began_s = time.monotonic()
        try:
            text = runs[name]()
        except (Violation, AssertionError) as violation:
            found += 1
            text = f"FAILED: {violation}"
        print(f"{name:14} {time.monotonic() - began_s:6.1f} s  {text}", flush=True)
    return min(found, 1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Hostile clients: see fuzz/README.md.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to run: commands, crowd, " + ", ".join(TARGETS))
    parser.add_argument("--seed", type=int, default=1, help="other seeds make other inputs (default: %(default)s)")
    parser.add_argument(
        "--inputs", type=int, default=_INPUTS, help="random inputs, shared among the targets (default: %(default)s)"
    )
    parser.add_argument(
        "--requests", type=int, default=_REQUESTS, help="requests with extreme arguments (default: %(default)s)"
    )
    parser.add_argument("--clients", type=int, default=_CLIENTS, help="slow and silent clients (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
