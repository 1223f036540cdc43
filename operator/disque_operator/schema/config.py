"""The rules of `spec.config`: which directives there are, and what values they take, from the broker's table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from disque_operator.directives import FREE, OWNED
from disque_operator.schema.kinds import rule, texts
from disque_operator.spec import Json
from disqued.config.kinds import Choice, Clamped, Count, Integer, Kind, Size, YesNo
from disqued.config.options import Option

_LARGEST: Final = (1 << 63) - 1
_MOST: Final = 64
_LONGEST: Final = 256


def config(description: str) -> Json:
    """The schema of the field."""
    names = _list(sorted([*(option.name for option in FREE), *OWNED]))
    known = rule(
        f"self.all(name, name in {names})",
        "only directives of the broker are known here, in lower case: see docs/configuration.md",
    )
    told = _told(
        f"!(name in {names})", ": no directive of the broker; they are in docs/configuration.md, in lower case"
    )
    rules = [known | told, *_owned(), *_values()]
    return texts(description, most=_MOST, longest=_LONGEST) | {"x-kubernetes-validations": rules}


def _owned() -> Iterable[Json]:
    """Directives that are the operator's, together when the same is to be done instead."""
    for instead in dict.fromkeys(OWNED.values()):
        yield _rule([name for name, other in OWNED.items() if other == instead], "", f"can not be given: {instead}")


def _values() -> Iterable[Json]:
    """Directives that anybody may give, together when they take the same values."""
    groups: dict[tuple[str, str], list[str]] = {}
    for option in FREE:
        found = _condition(option)
        if found is not None:
            groups.setdefault(found, []).append(option.name)
    for (condition, expected), names in groups.items():
        yield _rule(names, condition, f"is {expected}")


def _rule(names: list[str], condition: str, message: str) -> Json:
    """The condition, in which VALUE is the value, has to hold for these; without one they may not be there."""
    holds = f" && !({condition.replace('VALUE', 'self[name]')})" if condition else ""
    wrong = f"name in {_list(names)}{holds}"
    if len(names) == 1:
        return rule(f"!self.exists(name, {wrong})", f"{names[0]} {message}")
    every = f"{', '.join(names[:-1])} or {names[-1]}"
    return rule(f"!self.exists(name, {wrong})", f"{every} {message}") | _told(wrong, f" {message}")


def _told(wrong: str, message: str) -> Json:
    """A message that names one of the directives for which something is wrong: all together would cost too much."""
    quoted = json.dumps(message, ensure_ascii=False)
    return {"messageExpression": f"self.filter(name, {wrong})[0] + {quoted}"}


def _condition(option: Option[Any]) -> tuple[str, str] | None:
    """What has to hold of the VALUE of a directive, and how that is told; None where only the broker's parser knows."""
    describe = _KINDS.get(type(option.kind))
    return None if describe is None else describe(option.kind)


def _yes_no(_kind: Any) -> tuple[str, str]:
    return "VALUE.lowerAscii() in ['yes', 'no']", 'yes or no, in quotation marks: "yes"'


def _choice(kind: Any) -> tuple[str, str]:
    return f"VALUE.lowerAscii() in {_list(kind.choices)}", f"one of {', '.join(kind.choices)}"


def _integer(kind: Any) -> tuple[str, str]:
    pattern = "^-?[0-9]{1,18}$" if kind.minimum < 0 else "^[0-9]{1,18}$"
    condition = f"VALUE.matches('{pattern}')"
    if kind.minimum > 0:
        condition += f" && int(VALUE) >= {kind.minimum}"
    if kind.maximum < _LARGEST:
        return f"{condition} && int(VALUE) <= {kind.maximum}", f"a whole number, {kind.minimum} to {kind.maximum}"
    least = f", {kind.minimum} or greater" if kind.minimum >= 0 else ""
    return condition, f'a whole number{least}, in quotation marks: "100"'


def _count(_kind: Any) -> tuple[str, str]:
    return (
        "VALUE.lowerAscii() == 'all' || VALUE.matches('^[0-9]{1,18}$')",
        'all, or a whole number, 0 or greater, in quotation marks: "100"',
    )


def _size(_kind: Any) -> tuple[str, str]:
    return (
        "VALUE.lowerAscii().matches('^[0-9]{1,18}(b|k|kb|m|mb|g|gb)?$')",
        "a memory size, bytes or with one of the units k, kb, m, mb, g, gb: 64mb",
    )


_KINDS: Final[dict[type[Kind[Any]], Callable[[Any], tuple[str, str]]]] = {
    YesNo: _yes_no,
    Choice: _choice,
    Integer: _integer,
    Clamped: _integer,
    Count: _count,
    Size: _size,
}


def _list(words: Iterable[str]) -> str:
    quoted = [f"'{word}'" for word in words]
    return f"[{', '.join(quoted)}]"
