"""The validation rules of `spec.config`, made from the broker's table of directives: known names, accepted values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from disque_operator.apivalues import Json
from disque_operator.directives import FREE, OWNED
from disque_operator.sections import rule
from disqued.config.kinds import MAX_NUMBER, Choice, Clamped, Count, Integer, Kind, Size, YesNo
from disqued.config.option import Option


def config_rules() -> list[Json]:
    """Return the rules of the field."""
    names = _list(sorted([*(option.name for option in FREE), *OWNED]))
    known = rule(
        f"self.all(name, name in {names})",
        "config must contain only directives of the broker, in lower case: see docs/configuration.md",
    )
    named = _naming(f"!(name in {names})", " is not a directive of the broker: see docs/configuration.md")
    return [known | named, *_owned(), *_values()]


def _owned() -> Iterable[Json]:
    """Yield rules for directives that the operator sets, one for each advice."""
    for instead in dict.fromkeys(OWNED.values()):
        yield _rule([name for name, other in OWNED.items() if other == instead], "", f"cannot be set: {instead}")


def _values() -> Iterable[Json]:
    """Yield rules for directives that users may set, one for each set of accepted values."""
    groups: dict[tuple[str, str], list[str]] = {}
    for option in FREE:
        found = _condition(option)
        if found is not None:
            groups.setdefault(found, []).append(option.name)
    for (condition, expected), names in groups.items():
        yield _rule(names, condition, f"must be {expected}")


def _rule(names: list[str], condition: str, message: str) -> Json:
    """Return a rule: the condition on VALUE must hold for these names; without one, they must be absent."""
    holds = f" && !({condition.replace('VALUE', 'self[name]')})" if condition else ""
    wrong = f"name in {_list(names)}{holds}"
    if len(names) == 1:
        return rule(f"!self.exists(name, {wrong})", f"{names[0]} {message}")
    every = f"{', '.join(names[:-1])} or {names[-1]}"
    return rule(f"!self.exists(name, {wrong})", f"{every} {message}") | _naming(wrong, f" {message}")


def _naming(wrong: str, message: str) -> Json:
    """Return a message that names the first wrong directive. Naming all would exceed the cost limit of rules."""
    quoted = json.dumps(message, ensure_ascii=False)
    return {"messageExpression": f"self.filter(name, {wrong})[0] + {quoted}"}


def _condition(option: Option[Any]) -> tuple[str, str] | None:
    """Return what must hold for the VALUE of a directive, and how to say that; None if only the broker can tell."""
    describe = _KINDS.get(type(option.kind))
    return None if describe is None else describe(option.kind)


def _yes_no(_kind: Any) -> tuple[str, str]:
    return "VALUE.lowerAscii() in ['yes', 'no']", 'yes or no, in quotation marks: "yes"'


def _choice(kind: Any) -> tuple[str, str]:
    return f"VALUE.lowerAscii() in {_list(kind.choices)}", f"one of {', '.join(kind.choices)}"


def _integer(kind: Any) -> tuple[str, str]:
    pattern = "^-?[0-9]{1,12}$" if kind.minimum < 0 else "^[0-9]{1,12}$"
    condition = f"VALUE.matches('{pattern}')"
    if kind.minimum > 0:
        condition += f" && int(VALUE) >= {kind.minimum}"
    if kind.maximum < MAX_NUMBER:
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
        "a memory size in bytes, or with a unit (k, kb, m, mb, g, gb) such as 64mb",
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
