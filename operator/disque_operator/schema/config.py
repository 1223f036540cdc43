"""The rules of `spec.config`: which directives there are, and what values they take, from the broker's table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from disque_operator.directives import FREE, OWNED
from disque_operator.schema.kinds import rule, texts
from disque_operator.spec import Json
from disqued.config.kinds import Choice, Clamped, Integer, Kind, Size, YesNo
from disqued.config.options import Option

_LARGEST: Final = (1 << 63) - 1
_MOST: Final = 64
_LONGEST: Final = 256


def config(description: str) -> Json:
    """The schema of the field."""
    names = sorted([*(option.name for option in FREE), *OWNED])
    known = rule(
        f"self.all(name, name in {_list(names)})",
        "only directives of the broker are known here, in lower case: see docs/configuration.md",
    )
    known["messageExpression"] = (
        f"self.filter(name, !(name in {_list(names)})).join(', ')"
        " + ': no directive of the broker; they are in docs/configuration.md, in lower case'"
    )
    return texts(description, most=_MOST, longest=_LONGEST) | {
        "x-kubernetes-validations": [known, *_owned(), *_values()]
    }


def _owned() -> Iterable[Json]:
    """Directives that are the operator's, told together when the same is to be done instead."""
    for instead in dict.fromkeys(OWNED.values()):
        names = [name for name, other in OWNED.items() if other == instead]
        yield rule(_none_of(names), f"{_listed(names)} can not be given: {instead}")


def _values() -> Iterable[Json]:
    groups: dict[tuple[str, str], list[str]] = {}
    for option in FREE:
        told = _condition(option)
        if told is not None:
            groups.setdefault(told, []).append(option.name)
    for (condition, expected), names in groups.items():
        if len(names) == 1:
            value = condition.replace("VALUE", f"self['{names[0]}']")
            yield rule(f"!('{names[0]}' in self) || {value}", f"{names[0]} is {expected}")
        else:
            value = condition.replace("VALUE", "self[name]")
            yield rule(f"self.all(name, !(name in {_list(names)}) || {value})", f"{_listed(names)} are {expected}")


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
        return f"({condition} && int(VALUE) <= {kind.maximum})", f"a whole number, {kind.minimum} to {kind.maximum}"
    least = f", {kind.minimum} or greater" if kind.minimum >= 0 else ""
    return f"({condition})", f'a whole number{least}, in quotation marks: "100"'


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
    Size: _size,
}


def _none_of(names: list[str]) -> str:
    if len(names) == 1:
        return f"!('{names[0]}' in self)"
    return f"self.all(name, !(name in {_list(names)}))"


def _list(words: Iterable[str]) -> str:
    quoted = [f"'{word}'" for word in words]
    return f"[{', '.join(quoted)}]"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
