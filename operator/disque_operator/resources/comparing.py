"""Whether a live object is what its manifest says, knowing what the API server does with what it is given.

It fills in defaults, writes quantities its own way, leaves out empty and false fields, and may keep lists that are maps
in another order. Nothing of that is a difference.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from disque_operator.apivalues import Json, amount
from disque_operator.resources.merging import key_of

_NOT_STORED: Final = ("apiVersion", "kind")
"""Objects in lists do not have them."""
_WHOLE: Final = ("NetworkPolicy",)
"""Kinds whose lists are all one value."""
_AMOUNT: Final = re.compile(r"\.(limits|requests)\.[^.]+$|\.sizeLimit$")
_LEFT_OUT: Final = (
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostPort",
    "initialDelaySeconds",
    "minReadySeconds",
    "publishNotReadyAddresses",
    "readOnly",
    "stdin",
    "stdinOnce",
    "tty",
    "weight",
)
"""Fields that the API server leaves out when they are false or 0; of others that would be a difference."""


def differs(manifest: Json, live: Json | None) -> str:
    """The first field in which a live object is not what the manifest says, as `spec.replicas`; empty when it is.

    Fields that the manifest does not have are the API server's or other people's business. What was asked for once and
    is not any more shows in the annotation names.APPLIED.
    """
    if live is None:
        return "metadata"
    wanted = {name: value for name, value in manifest.items() if name not in _NOT_STORED}
    return _Comparison(keyed=manifest["kind"] not in _WHOLE).values(wanted, live, "", "").removeprefix(".")


@dataclass(frozen=True)
class _Comparison:
    """Walks a manifest: `path` leads to a value, which the field `name` holds. Answers where they differ."""

    keyed: bool
    """Whether lists are looked at as maps where they are maps."""

    def values(self, wanted: Any, live: Any, path: str, name: str) -> str:
        if isinstance(wanted, dict) and isinstance(live, dict):
            return self._objects(wanted, live, path)
        if isinstance(wanted, list) and isinstance(live, list):
            return self._lists(wanted, live, path, name)
        return "" if wanted == live or (_AMOUNT.search(path) and _are_equal_amounts(wanted, live)) else path

    def _objects(self, wanted: Json, live: Json, path: str) -> str:
        for name, value in wanted.items():
            below = f"{path}.{name}"
            if name in live:
                found = self.values(value, live[name], below, name)
            else:
                found = "" if _may_be_left_out(name, value) else below
            if found:
                return found
        return ""

    def _lists(self, wanted: list[Any], live: list[Any], path: str, name: str) -> str:
        keys = [key_of(name, entry) for entry in wanted] if self.keyed else []
        if keys and all(keys):
            there = {key_of(name, entry): entry for entry in live}
            pairs = [(key, entry, there.get(key)) for key, entry in zip(keys, wanted, strict=True)]
        elif len(wanted) == len(live):
            pairs = [(str(number), *pair) for number, pair in enumerate(zip(wanted, live, strict=True))]
        else:
            return path
        found = (self.values(one, other, f"{path}[{shown}]", name) for shown, one, other in pairs)
        return next(filter(None, found), "")


def _may_be_left_out(name: str, value: object) -> bool:
    return value is None or value in ("", [], {}) or (name in _LEFT_OUT and not value)


def _are_equal_amounts(one: object, other: object) -> bool:
    return amount(one) is not None and amount(one) == amount(other)
