"""The directives of the broker in a spec: which ones it may set, their values, which ones change without a restart.

Values are parsed by the broker's own parsers, so a value that is accepted here is accepted there. Values that the
parsers reject are left out here; `problems` reports them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from disque_operator import names
from disque_operator.apivalues import amount
from disque_operator.spec import Spec
from disqued.config.kinds import BadValueError, Kind, Seconds, encode
from disqued.config.option import Option
from disqued.config.options import OPTION_OF, OPTIONS
from disqued.resp.words import split_words

_ADDRESSES: Final = "pods announce the host names of their StatefulSet; use spec.exposure to expose them"
_EXTERNAL: Final = "set spec.exposure, which also makes the services and announces their addresses"
_SEEDS: Final = "the operator introduces members, and they discover each other through its service"
_PORTS: Final = "ports of the pods are fixed; set the port for clients in spec.service.port"
_OUTPUT: Final = "the log is written to standard output for `kubectl logs`"
_FILES: Final = "files are on the volume that spec.storage describes"
_TLS: Final = "set spec.tls, which also mounts the certificate and opens the ports"
_SECRET: Final = "set spec.clusterSecret, which also makes the secret"  # noqa: S105  advice
_RESTARTS: Final = "the operator restarts pods in a way that restores their queues"

OWNED: Final[Mapping[str, str]] = {
    "aof-enqueue-jobs-once": _RESTARTS,
    "aof-restart-marker": _RESTARTS,
    "appendfilename": _FILES,
    "appendfsync": "set spec.persistence.fsync",
    "appendonly": "set spec.persistence.appendonly to true or false",
    "bind": _PORTS,
    "cluster-announce-bus-port": _ADDRESSES,
    "cluster-announce-hostname": _ADDRESSES,
    "cluster-announce-external": _EXTERNAL,
    "cluster-announce-ip": _ADDRESSES,
    "cluster-announce-port": _ADDRESSES,
    "cluster-announce-tls-port": _ADDRESSES,
    "cluster-config-file": _FILES,
    "cluster-name": "it is derived from the namespace and the name of the resource",
    "cluster-port": _PORTS,
    "cluster-secret-file": _SECRET,
    "cluster-secret-required": _SECRET,
    "cluster-seeds": _SEEDS,
    "cluster-seeds-delay": _SEEDS,
    "cluster-settings-file": _FILES,
    "cluster-zone": "it is the zone of the Kubernetes node of the pod",
    "daemonize": "the process runs in the foreground of its container",
    "dir": _FILES,
    "external-port": _EXTERNAL,
    "external-tls-port": _EXTERNAL,
    "http-api": "set spec.httpApi, which also adds its port to the service",
    "http-port": _PORTS,
    "include": "set the directives themselves in spec.config",
    "logfile": _OUTPUT,
    "maxmemory": "set spec.maxmemory",
    "pidfile": "the process runs in the foreground of its container",
    "port": _PORTS,
    "protected-mode": "restrict access with spec.auth and spec.networkPolicy",
    "rename-command": "the operator needs all commands; restrict access with spec.auth and spec.networkPolicy",
    "requirepass": "passwords are generated, or read from the Secret spec.auth.secretName",
    "requirepass-former": "set spec.auth.rotation to rotate the password",
    "requirepass-file": "passwords are generated, or read from the Secret spec.auth.secretName",
    "shared-port": _PORTS,
    "shared-tls-port": _PORTS,
    "shutdown-drain-timeout": _RESTARTS,
    "shutdown-on-sigterm": _RESTARTS,
    "syslog-enabled": _OUTPUT,
    "syslog-facility": _OUTPUT,
    "syslog-ident": _OUTPUT,
    **dict.fromkeys(
        (
            *("tls-port", "tls-cert-file", "tls-key-file", "tls-key-file-pass", "tls-ca-cert-file", "tls-auth-clients"),
            *("tls-cluster", "http-tls"),
        ),
        _TLS,
    ),
    "unixsocket": _PORTS,
    "unixsocketperm": _PORTS,
    "user": "mount a file with users by spec.podTemplate, and set aclfile",
}
"""Directives that only the operator sets, with the reason or with what to do instead."""

FREE: Final[tuple[Option[Any], ...]] = tuple(
    option for option in OPTIONS if option.in_file and option.name not in OWNED
)
"""Directives that `spec.config` may set."""

_OF_FIELDS: Final = ("appendfsync", "appendonly", "maxmemory")
"""Directives that fields of the spec set."""

LIVE: Final[tuple[Option[Any], ...]] = tuple(
    option
    for option in (*FREE, *map(OPTION_OF.__getitem__, _OF_FIELDS))
    if option.settable and option.shown and not isinstance(option.kind, Seconds)
)
"""Directives that change while a broker runs. Durations need a restart: CONFIG GET shows only whether one is set."""

_LITTLE_MEMORY: Final = 512 << 20
_BIG_SHARE, _SMALL_SHARE = 75, 60
"""Percentage of the container's memory for jobs (docs/operations/memory.md)."""


def read(kind: Kind[Any], text: str) -> Any:
    """Parse the value of a directive as in a configuration file; raises BadValueError."""
    words = split_words(encode(text))
    if words is None:
        raise BadValueError("unbalanced quotes")
    return kind.read(words)


def given(spec: Spec) -> dict[str, Any]:
    """Return the values of all directives that fields of the spec and `config` set. Invalid ones are left out."""
    texts = {
        "appendonly": "yes" if spec.persistence.appendonly else "no",
        "appendfsync": spec.persistence.fsync,
        "maxmemory": maxmemory(spec),
        **({} if spec.http_api is None else {"http-api": spec.http_api}),
        **{option.name: spec.config[option.name] for option in FREE if option.name in spec.config},
    }
    return dict(_readable(texts))


def _readable(texts: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    for name, text in texts.items():
        try:
            yield name, read(OPTION_OF[name].kind, text)
        except BadValueError:
            continue


def maxmemory(spec: Spec) -> str:
    """Return `maxmemory`. `auto` is a share of the memory limit, or of the memory request if there is no limit."""
    if spec.maxmemory != "auto":
        return spec.maxmemory
    limit = amount((spec.resources.get("limits") or {}).get("memory"))
    request = amount((spec.resources.get("requests") or {}).get("memory"))
    percent = _SMALL_SHARE if (limit or request or _LITTLE_MEMORY) < _LITTLE_MEMORY else _BIG_SHARE
    if limit:
        return f"{percent}%"
    if request:
        return str(int(request) * percent // 100)
    option = OPTION_OF["maxmemory"]
    return (option.kind.write(option.default) or b"").decode()


def lines(spec: Spec) -> list[str]:
    """Return the lines of a configuration file."""
    written = {name: OPTION_OF[name].kind.write(value) for name, value in given(spec).items()}
    return [f"{name} {text.decode()}" for name, text in written.items() if text is not None]


def settings(spec: Spec) -> Mapping[str, str]:
    """Return all directives that CONFIG SET changes, with their desired values, which default to the broker's.

    Directives that only the operator sets, such as addresses and passwords, are not included.
    """
    values = given(spec)
    return {option.name: option.kind.show(values.get(option.name, option.default)).decode() for option in LIVE}


def same(directive: str, one: str, other: str) -> bool:
    """Return whether two texts are the same value of a directive, for example `64mb` and `67108864`."""
    kind = OPTION_OF[directive].kind
    try:
        return one == other or bool(kind.parse(encode(one)) == kind.parse(encode(other)))
    except BadValueError:
        return False


def restart_hash(spec: Spec) -> str:
    """Return a text that changes when a directive changes that needs a restart, or when a restart is requested."""
    live = {option.name for option in LIVE}
    fixed = {name: str(value) for name, value in given(spec).items() if name not in live}
    asked = [fixed, spec.annotations.get(names.RESTART_AT, "")]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]
