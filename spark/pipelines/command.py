"""What the pipelines share: options of the command line, a session, one line and one file at the end, exit codes.

0: done. 1: failed while it ran. 2: wrong options or input, found before anything was done; the message says what.
Results go to the standard output, and what goes wrong to standard error, where Spark writes too.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import SparkSession

from pyspark_disque.options import BadOption, Use, parse

FAILED: Final = 1
WRONG: Final = 2

Summary: TypeAlias = dict[str, Any]
"""What a run did, in numbers."""


class WrongInput(Exception):
    """Options or data that can not be meant; the text says why."""


def pair(text: str) -> tuple[str, str]:
    """An argument `name=value`.

    Raises:
        ArgumentTypeError: it is none.
    """
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not name=value")
    return name, value


def add_common(parser: argparse.ArgumentParser) -> None:
    """The options that every pipeline has."""
    spark = parser.add_argument_group("Spark")
    spark.add_argument("--master", help="where to run, as of spark-submit, which sets it too (default: this machine)")
    spark.add_argument(
        "--conf", action="append", type=pair, default=[], metavar="NAME=VALUE", help="a setting of Spark"
    )
    spark.add_argument("--log-level", default="ERROR", help="what Spark logs (default: %(default)s)")
    parser.add_argument(
        "--summary", type=Path, metavar="FILE", help="write the numbers of the last line there, as JSON"
    )


def add_nodes(parser: argparse._ArgumentGroup | argparse.ArgumentParser, *, required: bool) -> None:
    """Where the brokers are."""
    parser.add_argument(
        "--nodes", required=required, help="host:port of some nodes, with commas between; one is enough"
    )
    parser.add_argument("--password-file", metavar="FILE", help="their password, in a file that executors have as well")
    parser.add_argument(
        "--option", action="append", type=pair, default=[], metavar="NAME=VALUE",
        help="any other option of the connector, such as timeout=10s",
    )  # fmt: skip


def connector_options(arguments: argparse.Namespace, use: Use, **more: str | None) -> dict[str, str]:
    """The options of `format("disque")`, tried before Spark starts.

    Raises:
        WrongInput: they are wrong.
    """
    named = {"nodes": arguments.nodes, "passwordFile": arguments.password_file, **more}
    options = {name: value for name, value in named.items() if value is not None} | dict(arguments.option)
    try:
        parse(options, use)
    except BadOption as error:
        raise WrongInput(str(error)) from None
    return options


def session(name: str, arguments: argparse.Namespace, settings: Mapping[str, str] = {}) -> SparkSession:
    """The session, with these settings unless the user says otherwise."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # not started by spark-submit, which has its own way to say it
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark would take the first python3 there is
    builder = SparkSession.builder.appName(name)
    if arguments.master:
        builder = builder.master(arguments.master)
    for setting, value in (*settings.items(), *arguments.conf):
        builder = builder.config(setting, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(arguments.log_level)
    return spark


def run(
    parser: argparse.ArgumentParser,
    work: Callable[[argparse.Namespace], Summary],
    arguments: Sequence[str] | None = None,
) -> int:
    """Do the work with these arguments (default: those of the process), tell how it ended, and return the exit code."""
    chosen = parser.parse_args(arguments)
    began = time.monotonic()
    try:
        summary = work(chosen)
    except WrongInput as error:
        return _end(parser.prog, str(error), WRONG)
    except (PySparkException, Py4JError, OSError) as error:
        return _end(parser.prog, reason(error), WRONG if _is_input(error) else FAILED)
    summary |= {"seconds": round(time.monotonic() - began, 1)}
    sys.stdout.write(", ".join(f"{name.replace('_', ' ')}: {_shown(value)}" for name, value in summary.items()) + "\n")
    if chosen.summary is not None:
        chosen.summary.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    return 0


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _end(program: str, text: str, status: int) -> int:
    sys.stderr.write(f"{program}: error: {text}\n")
    return status


_RAISED: Final = re.compile(
    r"^(?:: |Caused by: )?(?:\w+\.)*(?P<kind>\w+(?:Error|Exception|Option|Damaged|Failed)): (?P<text>.+?)\s*$",
    re.MULTILINE,
)
"""The line of a traceback that says what was raised."""
_INPUT: Final = frozenset({"BadOption", "FileNotFoundError"})
"""What a source raises, while Spark asks it, for what it was given; anything else went wrong."""


def _raised(error: Exception) -> re.Match[str] | None:
    """What was raised in another process, of which Spark has only the traceback; the last is nearest to the cause."""
    text = str(error)
    if "Traceback" not in text and not isinstance(error, Py4JError):
        return None
    return max(_RAISED.finditer(text), key=lambda match: match.start(), default=None)


def _is_input(error: Exception) -> bool:
    raised = _raised(error)
    if raised is not None:
        return raised["kind"] in _INPUT
    return isinstance(error, AnalysisException | ParseException)


def reason(error: Exception) -> str:
    """What went wrong, in a line."""
    raised = _raised(error)
    words = (str(error) if raised is None else raised["text"]).strip().split("\n", 1)[0]
    return re.sub(r"\s*SQLSTATE: \w+.*$", "", words)
