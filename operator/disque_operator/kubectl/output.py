"""The `-o json` option, as in kubectl. The default is a table on a terminal and tab-separated lines in a pipe."""

from __future__ import annotations

import argparse
import json
import sys

from disqued.cli.render import Form


def output_option(parser: argparse.ArgumentParser) -> None:
    """Add `-o`."""
    parser.add_argument("-o", "--output", choices=("json",), help="output format")


def form(options: argparse.Namespace) -> Form | None:
    """Return the chosen format for `print_rows`; None is its default."""
    return Form.JSON if options.output == "json" else None


def print_json(value: object) -> None:
    """Print a value as one line of JSON."""
    sys.stdout.write(json.dumps(value) + "\n")
