"""The common parts of the pipelines: command-line options, the Spark session, the summary and the exit codes.

Exit codes: 0 success; 1 failure while running; 2 invalid options or input, found before anything was done. Results go
to standard output. Errors go to standard error, where Spark writes as well.
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

from pyspark_disque.options import Use, parse
from pyspark_disque.optionvalues import BadOption

FAILED: Final = 1
WRONG: Final = 2

Summary: TypeAlias = dict[str, Any]
"""The numbers that a run reports."""


class WrongInput(Exception):
    """Invalid options or data; the message says why."""


def pair(text: str) -> tuple[str, str]:
    """Parse an argument `name=value`.

    Raises:
        ArgumentTypeError: the argument has another form.
    """
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"expected name=value, not {text!r}")
    return name, value


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options that every pipeline has."""
    spark = parser.add_argument_group("Spark")
    spark.add_argument("--master", help="Spark master URL; spark-submit sets it as well (default: local)")
    spark.add_argument(
        "--conf", action="append", type=pair, default=[], metavar="NAME=VALUE", help="Spark configuration property"
    )
    spark.add_argument("--log-level", default="ERROR", help="log level of Spark (default: %(default)s)")
    parser.add_argument(
        "--summary", type=Path, metavar="FILE", help="write the numbers of the last line to this file, as JSON"
    )


def add_nodes(parser: argparse._ArgumentGroup | argparse.ArgumentParser, *, required: bool) -> None:
    """Add the options of the connection to the brokers."""
    parser.add_argument(
        "--nodes",
        required=required,
        help="comma-separated host:port, or disques://[user@]host:port for TLS; one is enough",
    )
    parser.add_argument("--password-file", metavar="FILE", help="file with the password; executors must have it, too")
    parser.add_argument(
        "--option", action="append", type=pair, default=[], metavar="NAME=VALUE",
        help="any other option of the connector, such as timeout=10s",
    )  # fmt: skip


def connector_options(arguments: argparse.Namespace, use: Use, **more: str | None) -> dict[str, str]:
    """Return the options of `format("disque")`, validated before Spark starts.

    Raises:
        WrongInput: an option is invalid.
    """
    named = {"nodes": arguments.nodes, "passwordFile": arguments.password_file, **more}
    options = {name: value for name, value in named.items() if value is not None} | dict(arguments.option)
    try:
        parse(options, use)
    except BadOption as error:
        raise WrongInput(str(error)) from None
    return options


def session(name: str, arguments: argparse.Namespace, settings: Mapping[str, str] = {}) -> SparkSession:
    """Return the session. The options of the user override `settings`."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit sets the Python of the workers itself
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's default is the first python3 of the PATH
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
    """Run `work` with these arguments (default: those of the process), print the result and return the exit code."""
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
"""The line of a traceback with the exception."""
_INPUT: Final = frozenset({"BadOption", "FileNotFoundError"})
"""The exceptions of a data source that report invalid input; any other is a failure."""


def _raised(error: Exception) -> re.Match[str] | None:
    """Find the exception of another process in the traceback that Spark has; the last one is closest to the cause."""
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
    """Return the reason of an error, in one line."""
    raised = _raised(error)
    words = (str(error) if raised is None else raised["text"]).strip().split("\n", 1)[0]
    return re.sub(r"\s*SQLSTATE: \w+.*$", "", words)
