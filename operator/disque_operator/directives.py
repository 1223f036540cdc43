"""The directives of the broker as a spec gives them: which it may give, their values, what changes without a restart.

Values are read by the broker's own parsers, so that what is accepted here starts there. A value that these refuse is
left out here and told of by `problems`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from disque_operator import names
from disque_operator.quantities import amount
from disque_operator.spec import Spec
from disqued.config.kinds import BadValueError, Kind, Seconds, encode
from disqued.config.options import OPTION_OF, OPTIONS, Option
from disqued.resp.words import split_words

_ADDRESSES: Final = "pods announce the names that their StatefulSet gives them; expose them by spec.service"
_PORTS: Final = "ports in the pod are fixed; the one for clients is spec.service.port"
_OUTPUT: Final = "the log goes to standard output, where `kubectl logs` finds it"
_FILES: Final = "files stand on the volume that spec.storage describes"
_RESTARTS: Final = "the operator restarts pods so that queues come back as they were"

OWNED: Final[Mapping[str, str]] = {
    "aof-enqueue-jobs-once": _RESTARTS,
    "aof-restart-mark": _RESTARTS,
    "appendfilename": _FILES,
    "appendfsync": "write it to spec.persistence.fsync",
    "appendonly": "write it to spec.persistence.appendonly, as true or false",
    "bind": _PORTS,
    "cluster-announce-bus-port": _ADDRESSES,
    "cluster-announce-hostname": _ADDRESSES,
    "cluster-announce-ip": _ADDRESSES,
    "cluster-announce-port": _ADDRESSES,
    "cluster-config-file": _FILES,
    "cluster-name": "it is made of the namespace and the name of the resource",
    "cluster-port": _PORTS,
    "cluster-seeds": "members find each other by the service that the operator makes",
    "daemonize": "the process runs in the foreground of its container",
    "dir": _FILES,
    "http-port": _PORTS,
    "include": "write the directives themselves to spec.config",
    "logfile": _OUTPUT,
    "maxmemory": "write it to spec.maxmemory",
    "pidfile": "the process runs in the foreground of its container",
    "port": _PORTS,
    "rename-command": "the operator needs all commands; spec.auth and spec.networkPolicy keep others out",
    "requirepass": "spec.auth has a password generated, or takes it from a Secret of yours (spec.auth.secretName)",
    "requirepass-former": "spec.auth has passwords rotated (spec.auth.rotation)",
    "shutdown-on-sigterm": _RESTARTS,
    "syslog-enabled": _OUTPUT,
    "syslog-facility": _OUTPUT,
    "syslog-ident": _OUTPUT,
    "unixsocket": _PORTS,
    "unixsocketperm": _PORTS,
}
"""Directives that are the operator's, and what to do instead of giving them."""

FREE: Final[tuple[Option[Any], ...]] = tuple(
    option for option in OPTIONS if option.in_file and option.name not in OWNED
)
"""Those that `spec.config` may give."""

_OF_FIELDS: Final = ("appendfsync", "appendonly", "maxmemory")
"""Those that fields of the spec give."""

LIVE: Final[tuple[Option[Any], ...]] = tuple(
    option
    for option in (*FREE, *map(OPTION_OF.__getitem__, _OF_FIELDS))
    if option.settable and option.shown and not isinstance(option.kind, Seconds)
)
"""Those that change while a node runs. Of seconds CONFIG GET shows only whether there are any: a restart is surer."""

_LITTLE_MEMORY: Final = 512 << 20
_BIG_SHARE, _SMALL_SHARE = 75, 60
"""Percent of what a container has for the jobs: docs/operations/memory.md."""


def read(kind: Kind[Any], text: str) -> Any:
    """The value that the text stands for behind a directive's name in a file; raises BadValueError."""
    words = split_words(encode(text))
    if words is None:
        raise BadValueError("quotes are not closed")
    return kind.read(words)


def given(spec: Spec) -> dict[str, Any]:
    """The values of all directives that the spec gives, by its fields or in `config`, those that can be read."""
    texts = {
        "appendonly": "yes" if spec.persistence.appendonly else "no",
        "appendfsync": spec.persistence.fsync,
        "maxmemory": maxmemory(spec),
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
    """The directive `maxmemory`. `auto` is a share of the memory limit, or of the request where there is no limit."""
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
    """The lines of a configuration file."""
    written = {name: OPTION_OF[name].kind.write(value) for name, value in given(spec).items()}
    return [f"{name} {text.decode()}" for name, text in written.items() if text is not None]


def settings(spec: Spec) -> Mapping[str, str]:
    """All directives that CONFIG SET changes, with the values that the spec asks for, defaults for those it lacks.

    Those that are the operator's alone, as addresses and passwords, are not among them.
    """
    values = given(spec)
    return {option.name: option.kind.show(values.get(option.name, option.default)).decode() for option in LIVE}


def same(directive: str, one: str, other: str) -> bool:
    """Whether two texts are the same value of a directive, as `64mb` and `67108864`."""
    kind = OPTION_OF[directive].kind
    try:
        return one == other or bool(kind.parse(encode(one)) == kind.parse(encode(other)))
    except BadValueError:
        return False


def restart_hash(spec: Spec) -> str:
    """A text that changes when something changes that a node only learns by a restart."""
    live = {option.name for option in LIVE}
    fixed = {name: str(value) for name, value in given(spec).items() if name not in live}
    asked = [fixed, spec.annotations.get(names.RESTART_AT, "")]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]
