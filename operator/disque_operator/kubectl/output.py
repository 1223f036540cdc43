"""`-o json`, as kubectl has it; without it a table on a terminal and lines with tabs in a pipe."""

from __future__ import annotations

import argparse
import json
import sys

from disqued.cli.render import Form


def output_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for programs."""
    parser.add_argument("-o", "--output", choices=("json",), help="json: for programs")


def form(options: argparse.Namespace) -> Form | None:
    """The form for `print_rows`."""
    return Form.JSON if options.output == "json" else None


def print_json(value: object) -> None:
    """Print a value on one line."""
    sys.stdout.write(json.dumps(value) + "\n")
