"""Settings of the operator process: each is a flag, and an environment variable for Deployments."""

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
    """Namespaces to watch; empty for all."""
    image: str
    identity: str
    pod_templates: str
    """`baseline` or `privileged`."""
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
    """A flag, and the environment variable derived from its name."""

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
    _Setting("namespaces", "", _words, "namespaces to watch, separated by commas; empty for all"),
    _Setting("image", f"disqued:{__version__}", str, "default image of brokers"),
    _Setting(
        "identity",
        "",
        str,
        "name of this process in the Lease; default: the pod's name, or the host name with a random suffix",
    ),
    _Setting(
        "pod-templates",
        "baseline",
        str,
        "what spec.podTemplate may ask for: at most the Pod Security Standard baseline, and no account and no node; or "
        "anything",
        ("baseline", "privileged"),
    ),
    _Setting("lease", "disque-operator", str, "name of the Lease for leader election"),
    _Setting(
        "lease-namespace", "", str, "namespace of the Lease; default: the only watched namespace, or the operator's"
    ),
    _Setting("workers", "8", _count, "number of clusters that are reconciled concurrently, at least 1"),
    _Setting("resync", "60", _seconds, "seconds between lists of all resources, to find missed changes, 10 to 3600"),
    _Setting(
        "liveness", "", _url, "URL of the liveness probe, for example http://0.0.0.0:8080/healthz; empty for none"
    ),
    _Setting("metrics-port", "0", _port, "port of /metrics; 0 for none"),
    _Setting("log-format", "json", str, "format of log lines", ("json", "text")),
    _Setting("log-level", "info", str, "minimum level of log lines", ("debug", "info", "warning", "error")),
)


def parse(argv: Sequence[str], environ: Mapping[str, str], suffix: str, own_namespace: str) -> Options:
    """Parse the command line. Settings that it does not contain come from the environment, then from defaults.

    An invalid value ends the process with an error, like argparse.

    Args:
        argv: The arguments.
        environ: The environment.
        suffix: A random suffix that distinguishes processes on one host.
        own_namespace: The namespace of the operator; `default` outside a cluster.
    """
    parser = argparse.ArgumentParser(
        prog="disque-operator",
        description="Makes each DisqueCluster a running cluster of brokers, and keeps it running.",
        epilog=f"Each flag has an environment variable with the prefix {PREFIX}, for example {_SETTINGS[0].variable}.",
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
    identity = values["identity"] or environ.get("POD_NAME") or f"{socket.gethostname()}_{suffix}"
    return Options(
        namespaces=namespaces,
        image=values["image"],
        identity=identity[:LONGEST_IDENTITY],
        pod_templates=values["pod-templates"],
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
        parser.error(f"invalid value {text!r} of {source}: must be one of {', '.join(setting.choices)}")
    try:
        return setting.read(text)
    except ValueError:
        parser.error(f"invalid value {text!r} of {source}: must be the {setting.help}")
