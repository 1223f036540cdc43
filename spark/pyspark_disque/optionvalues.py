"""Parsers of the values of options, for the tables of options."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from disqued.client.nodes import parse_address
from disqued.client.urls import Target, TlsOptions, parse_nodes

STATES: Final = ("queued", "active", "wait-repl", "acked")
MAX_SECONDS: Final = (1 << 32) - 1
"""The broker stores times in 32 bits."""
MAX_PRIORITY: Final = (1 << 31) - 1
MAX_RETAIN_S: Final = 30 * 86400
"""The broker keeps a record no longer."""


class BadOption(ValueError):
    """An option is unknown, missing or invalid, or conflicts with another one."""


class Secret(str):
    """A string whose value does not appear in messages or plans."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"

    def __str__(self) -> str:
        return "***"

    def reveal(self) -> str:
        """Return the value."""
        return str.__str__(self)

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return Secret, (self.reveal(),)


def whole(minimum: int, maximum: int) -> Callable[[str], int]:
    """Return a parser of integers between two bounds."""

    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text.strip()) or not minimum <= int(text) <= maximum:
            raise BadOption(f"must be an integer between {minimum} and {maximum}")
        return int(text)

    return read


def read_priority(text: str) -> int:
    """Parse an integer of 32 bits with its sign."""
    if not re.fullmatch(r"-?[0-9]{1,10}", text.strip()) or not -MAX_PRIORITY - 1 <= int(text) <= MAX_PRIORITY:
        raise BadOption(f"must be an integer between {-MAX_PRIORITY - 1} and {MAX_PRIORITY}")
    return int(text)


_UNITS_S: Final = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def seconds(minimum: int, maximum: int = MAX_SECONDS) -> Callable[[str], int]:
    """Return a parser of times in seconds: `30`, `30s`, `15m`, `2h`, `1d`."""

    def read(text: str) -> int:
        match = re.fullmatch(r"([0-9]{1,12})\s*(s|m|min|h|d)?", text.strip().lower())
        time_s = int(match[1]) * _UNITS_S[match[2] or ""] if match else -1
        if not minimum <= time_s <= maximum:
            raise BadOption(f"must be a time such as 30, 30s, 15m or 2h, between {minimum} s and {maximum} s")
        return time_s

    return read


def read_flag(text: str) -> bool:
    """Parse `true` or `false`."""
    if text.strip().lower() not in {"true", "false"}:
        raise BadOption("must be true or false")
    return text.strip().lower() == "true"


def one_of(*words: str) -> Callable[[str], str]:
    """Return a parser of one of several words, case-insensitive."""

    def read(text: str) -> str:
        for word in words:
            if word.lower() == text.strip().lower():
                return word
        raise BadOption(f"must be one of {', '.join(words)}")

    return read


def read_names(text: str) -> tuple[str, ...]:
    """Parse comma-separated names, without duplicates."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise BadOption("must be a comma-separated list with at least one name")
    return names


def read_name(text: str) -> str:
    """Return the text, which must not be empty."""
    if not text:
        raise BadOption("must not be empty")
    return text


def read_states(text: str) -> tuple[str, ...]:
    """Parse comma-separated states of jobs."""
    states = tuple(name.lower() for name in read_names(text))
    if not set(states) <= set(STATES):
        raise BadOption(f"must be a comma-separated list of {', '.join(STATES)}")
    return states


def read_addresses(text: str) -> Target:
    """Parse comma-separated addresses and URLs. Errors of the client may quote a password, so they are not repeated."""
    addresses = read_names(text)
    try:
        target = parse_nodes(addresses)
        for address in target.nodes:
            parse_address(address)
    except ValueError:
        raise BadOption(
            "must be a comma-separated list of host:port, service names, or URLs disques://[user@]host[:port] that "
            "agree about TLS and the user"
        ) from None
    if target.password is not None:
        raise BadOption("must not contain a password, because Spark may show this option; use passwordFile")
    if target.tls_options != TlsOptions():
        raise BadOption("must not say more about TLS than disques://; use the options whose names begin with tls")
    return target


def read_pattern(text: str) -> str:
    """Return the text, which must be a regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise BadOption(f"must be a Python regular expression: {error}") from None
    return read_name(text)
