"""`python -m disqued.demo`: run the demonstration, then keep the broker up until Ctrl-C if somebody watches.

Exit status: 0 when both counts agree, 1 when they do not or the demonstration could not run, 2 for wrong arguments, 130
when it was interrupted before its end.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from rich.console import Console

from disqued.demo import summary
from disqued.demo.broker import Broker, BrokerFailedError, build, choose_port, running_broker
from disqued.demo.crew import Crew, CrewFailedError
from disqued.demo.source import count_directly, source_files, standard_library
from disqued.demo.view import view

MOST_WORKERS = 8

INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run with these command line arguments; the exit status."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False)
    try:
        names = source_files(options.source)
        with running_broker(options.port or choose_port()) as broker:
            _introduce(console, broker, options, len(names))
            status = _demonstrate(console, broker, options, names)
            if status == 0 and console.is_terminal:
                _serve(console, broker)
            return status
    except (BrokerFailedError, CrewFailedError, ValueError) as error:
        console.print(f"The demonstration failed: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("Interrupted.")
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    cores = os.cpu_count() or 1
    parser = argparse.ArgumentParser(prog="python -m disqued.demo", description="A broker at work on real input.")
    parser.add_argument("--source", type=_folder, default=standard_library(), help="folder of Python files to count")
    parser.add_argument("--workers", type=_positive, default=min(MOST_WORKERS, cores + 1), help="worker processes")
    parser.add_argument("--retry", type=_positive, default=3, help="retry time of the jobs, in seconds")
    parser.add_argument("--port", type=_positive, help="the broker's port; 7711 if free, else any, when left out")
    return parser


def _folder(text: str) -> Path:
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is not a folder")
    return path.resolve()


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return int(text)


def _introduce(console: Console, broker: Broker, options: argparse.Namespace, files: int) -> None:
    console.print(f"Broker: {broker.address}, process {broker.pid}, {build()} build")
    console.print(f"Input:  {files:,} Python files of {options.source}", soft_wrap=True)
    console.print(f"Crew:   {options.workers} worker processes, retry time {options.retry} s, one will be killed\n")


def _demonstrate(console: Console, broker: Broker, options: argparse.Namespace, names: list[str]) -> int:
    crew = Crew((broker.address,), options.source, names, options.workers, options.retry)
    with view(console, len(names)) as shown:
        direct = count_directly(options.source, names, os.cpu_count() or 1, shown.counted)
        tally = crew.run(shown.reported)
    console.print()
    console.print(summary.workers(tally))
    console.print(summary.figures(tally))
    problem = summary.disagreement(tally, direct)
    if problem is not None:
        console.print(f"FAILED: {problem}", style="bold red", soft_wrap=True)
        return 1
    console.print(
        f"OK: {direct.definitions:,} definitions, the same as counted without the broker.",
        style="bold green",
        soft_wrap=True,
    )
    return 0


def _serve(console: Console, broker: Broker) -> None:
    try:
        console.print(f"\nThe broker keeps serving on {broker.address}. In another terminal:\n")
        console.print(f"    disque -p {broker.port} addjob greetings hello 0")
        console.print(f"    disque -p {broker.port} getjob from greetings")
        console.print(f"    disque -p {broker.port} top\n")
        console.print("Ctrl-C ends it.")
        while True:
            time.sleep(1)  # not one long wait: a signal just before it would not end it
    except KeyboardInterrupt:
        console.print("Bye.")


if __name__ == "__main__":
    sys.exit(main())
