"""The transport options (`broker_transport_options` in Celery): one row each, from which the documentation follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class Option:
    """A transport option: `parse` returns its value or raises ValueError with what it must be."""

    name: str
    default: object
    parse: Callable[[object], object]
    help: str


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """The values of all options; the table `OPTIONS` explains them."""

    retry: int
    ttl: int
    expires_grace: int
    transient_ttl: int
    fanout_ttl: int
    replicate: int | None
    sync: int | None
    publish_timeout: float
    publish_patience: float
    socket_timeout: float
    discover: bool
    prefetch_limit: int
    queue_order_strategy: str
    bindings_cache: float


def _integer(least: int, most: int) -> Callable[[object], object]:
    def parse(value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        raise ValueError(f"an integer from {least} to {most}")

    return parse


def _optional(parse: Callable[[object], object]) -> Callable[[object], object]:
    return lambda value: None if value is None else parse(value)


def _seconds(value: object) -> object:
    if not isinstance(value, bool) and isinstance(value, int | float) and 0 <= value < math.inf:
        return float(value)
    raise ValueError("a number of seconds, 0 or more")


def _flag(value: object) -> object:
    if isinstance(value, bool):
        return value
    raise ValueError("True or False")


def _order(value: object) -> object:
    if value in {"round_robin", "sorted", "priority"}:
        return value
    raise ValueError("round_robin, sorted or priority")


_MOST_TTL_S: Final = 3650 * DAY_S

_FLAGS: Final = {"true": True, "yes": True, "false": False, "no": False}

OPTIONS: Final = (
    Option(
        "retry",
        60,
        _integer(1, DAY_S),
        "Seconds after which a task is delivered again if its worker is gone. While the worker lives, its tasks are "
        "renewed, however long they run.",
    ),
    Option(
        "ttl",
        30 * DAY_S,
        _integer(60, _MOST_TTL_S),
        "Seconds after which the broker deletes a task that nobody has finished. Twice its countdown is added. A task "
        "can be renewed during the first half of this time.",
    ),
    Option(
        "expires_grace",
        DAY_S,
        _integer(0, _MOST_TTL_S),
        "Seconds that a task with `expires` stays longer, so that a worker can report it as revoked. Workers never run "
        "an expired task.",
    ),
    Option(
        "transient_ttl",
        DAY_S,
        _integer(60, _MOST_TTL_S),
        "The `ttl` of messages with delivery mode 1, for example replies of the `rpc://` result backend.",
    ),
    Option(
        "fanout_ttl",
        3600,
        _integer(1, DAY_S),
        "Seconds after which the broker deletes a message to a temporary queue: remote control, its replies, events.",
    ),
    Option(
        "replicate",
        None,
        _optional(_integer(1, 65_535)),
        "How many nodes get a copy of a task; by default what the queue or the broker has set, 3 in a cluster of three "
        "or more. Messages with delivery mode 1 have one copy.",
    ),
    Option(
        "sync",
        None,
        _optional(_integer(1, 65_535)),
        "How many copies are confirmed when `delay()` returns; the others follow. By default 2 in a cluster of three "
        "or more nodes, so that one of them can fail, otherwise all.",
    ),
    Option("publish_timeout", 5.0, _seconds, "Seconds that a node may take to make those copies."),
    Option(
        "publish_patience",
        30.0,
        _seconds,
        "Seconds for which `delay()` tries the other nodes if a node has too few others for the copies, for example in "
        "a partition. 0: it fails at once.",
    ),
    Option("socket_timeout", 5.0, _seconds, "Seconds without an answer after which a node counts as gone."),
    Option(
        "discover",
        True,
        _flag,
        "Whether to use all nodes of the cluster. False: only those in the URL, for example behind one address.",
    ),
    Option(
        "prefetch_limit",
        100,
        _integer(1, 10_000),
        "The most messages that one GETJOB fetches, also for workers without a limit (`worker_prefetch_multiplier` 0).",
    ),
    Option(
        "queue_order_strategy",
        "round_robin",
        _order,
        "In which order a worker looks into its queues: `round_robin`, `sorted` by name, or `priority`, as listed.",
    ),
    Option(
        "bindings_cache",
        1.0,
        _seconds,
        "Seconds for which a process remembers the temporary queues that are bound to a topic exchange.",
    ),
)
"""All options."""

_SIMILAR: Final = 0.85
"""How similar a mistyped name is; less than any option of other transports."""


def parse_options(given: Mapping[str, object]) -> TransportOptions:
    """Return the options with their defaults. Others are ignored: they are for other transports, or for kombu itself.

    Raises:
        ValueError: a value is wrong, or a name is mistyped; the text says what it must be.
    """
    values = {option.name: option.default for option in OPTIONS}
    rows = {option.name: option for option in OPTIONS}
    for name, value in given.items():
        row = rows.get(name)
        if row is not None:
            values[name] = _parsed(row, value)
            continue
        similar = get_close_matches(name, rows, 1, _SIMILAR)
        if similar:
            raise ValueError(f"unknown transport option {name!r}; did you mean {similar[0]!r}?")
    return TransportOptions(**values)  # type: ignore[arg-type]  # the parsers return their types


def value_of_text(text: str) -> object:
    """Return what the text of an option in a URL means: True, False, a number, or the text itself."""
    flag = _FLAGS.get(text.lower())
    if flag is not None:
        return flag
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _parsed(row: Option, value: object) -> object:
    try:
        return row.parse(value)
    except ValueError as error:
        raise ValueError(f"transport option {row.name!r} must be {error}, not {value!r}") from None
