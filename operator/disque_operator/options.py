"""How the operator itself is set: each setting is a flag, and an environment variable for Deployments."""

from __future__ import annotations

import argparse
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from disqued import __version__

PREFIX: Final = "DISQUE_OPERATOR_"
LONGEST_IDENTITY: Final = 200


@dataclass(frozen=True)
class Options:
    """All settings."""

    namespaces: tuple[str, ...]
    """Those that are looked after; none for all."""
    image: str
    identity: str
    lease: str
    lease_namespace: str
    workers: int
    resync_s: float
    liveness: str
    metrics_port: int
    log_format: str
    log_level: str


@dataclass(frozen=True)
class _Setting:
    """A flag, and by its name a variable."""

    name: str
    default: str
    read: Callable[[str], Any]
    help: str
    choices: tuple[str, ...] | None = None

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper().replace("-", "_")


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number < 65536:
        raise ValueError(text)
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 10 <= number <= 3600:
        raise ValueError(text)
    return number


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.replace(",", " ").split() if word)


def _url(text: str) -> str:
    if text and not text.startswith("http://"):
        raise ValueError(text)
    return text


_SETTINGS: Final = (
    _Setting("namespaces", "", _words, "namespaces to look after, with commas between them; empty for all"),
    _Setting("image", f"disqued:{__version__}", str, "image of brokers whose resource names none"),
    _Setting("identity", "", str, "name of this process in the Lease; the pod's name, or the host's and a number"),
    _Setting("lease", "disque-operator", str, "name of the Lease whose holder acts"),
    _Setting("lease-namespace", "", str, "where the Lease is; the one namespace, or the operator's"),
    _Setting("workers", "8", _count, "clusters that are worked on at a time"),
    _Setting("resync", "60", _seconds, "seconds between looks for resources whose changes were not told, 10 to 3600"),
    _Setting(
        "liveness", "", _url, "where the liveness probe is answered, as http://0.0.0.0:8080/healthz; empty for nowhere"
    ),
    _Setting("metrics-port", "0", _port, "port of /metrics; 0 for none"),
    _Setting("log-format", "json", str, "form of log lines", ("json", "text")),
    _Setting("log-level", "info", str, "least important lines that are logged", ("debug", "info", "warning", "error")),
)


def parse(argv: Sequence[str], environ: Mapping[str, str], chance: str, own_namespace: str) -> Options:
    """The options of a command line; what it leaves out comes from the environment, then from the defaults.

    `chance` tells processes on one host apart; `own_namespace` is where the operator runs, `default` outside a cluster.
    A wrong value ends the process with a line that says what is right, as argparse does.
    """
    parser = argparse.ArgumentParser(
        prog="disque-operator",
        description="Makes each DisqueCluster a running cluster of brokers, and keeps it one.",
        epilog=f"Each flag has an environment variable, {PREFIX}… with _ for -: {_SETTINGS[0].variable}.",
    )
    for setting in _SETTINGS:
        parser.add_argument(
            f"--{setting.name}",
            metavar=setting.name.upper() if setting.choices is None else "|".join(setting.choices),
            help=f"{setting.help} ({setting.default or 'empty'})",
        )
    given = vars(parser.parse_args(argv))
    values = {setting.name: _value(parser, setting, given, environ) for setting in _SETTINGS}
    namespaces = tuple(values["namespaces"])
    identity = values["identity"] or environ.get("POD_NAME") or f"{socket.gethostname()}_{chance}"
    return Options(
        namespaces=namespaces,
        image=values["image"],
        identity=identity[:LONGEST_IDENTITY],
        lease=values["lease"],
        lease_namespace=values["lease-namespace"] or (namespaces[0] if len(namespaces) == 1 else own_namespace),
        workers=values["workers"],
        resync_s=values["resync"],
        liveness=values["liveness"],
        metrics_port=values["metrics-port"],
        log_format=values["log-format"],
        log_level=values["log-level"],
    )


def _value(
    parser: argparse.ArgumentParser, setting: _Setting, given: Mapping[str, str | None], environ: Mapping[str, str]
) -> Any:
    flag = given[setting.name.replace("-", "_")]
    source = setting.variable if flag is None else f"--{setting.name}"
    text = environ.get(setting.variable) if flag is None else flag
    if text is None:
        text = setting.default
    if setting.choices is not None and text not in setting.choices:
        parser.error(f"{source} is {text!r}; it is one of {', '.join(setting.choices)}")
    try:
        return setting.read(text)
    except ValueError:
        parser.error(f"{source} is {text!r}; it is: {setting.help}")
