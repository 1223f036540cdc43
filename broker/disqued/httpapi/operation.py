"""An operation of the API: a request, its parameters, the command that executes it, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from disqued.httpapi.kinds import Kind
from disqued.resp.replies import Reply

PATH: Final = "path"
QUERY: Final = "query"
BODY: Final = "body"
OPTIONS: Final = "*"
"""In the words of a command: all options that are given."""

Values: TypeAlias = Mapping[str, Any]
"""The checked values of a request by the names of their parameters."""


@dataclass(frozen=True)
class Parameter:
    """A value in a request."""

    name: str
    where: str
    """PATH, QUERY or BODY."""
    kind: Kind
    about: str
    option: str = ""
    """The option of the command that it is; empty if the words of the operation name it, or no word is it."""
    required: bool = False
    default: Any = None
    """The value if none is given; None for the default of the command."""
    needs: str = ""
    """The parameter without which it has no effect."""


@dataclass(frozen=True)
class Result:
    """The answer of an operation that succeeded."""

    status: int
    about: str
    schema: str
    """The name of its schema (`schemas.SCHEMAS`)."""
    read: Callable[[Reply, Values], Any]
    """Converts the reply of the command to JSON. Raises ApiError."""


@dataclass(frozen=True)
class Operation:
    """One row of the table."""

    method: str
    path: str
    """Below `/v1/`, with parameters in braces: `jobs/{id}`."""
    name: str
    """Its operationId."""
    summary: str
    about: str
    words: tuple[str, ...]
    """The words of the command: as they are, `{name}` for a parameter, `+name` for the option that a parameter is, and
    `*` for all other options."""
    parameters: tuple[Parameter, ...]
    result: Result
    errors: tuple[str, ...]
    """The codes of errors that are special to it."""
    changes: bool = True
    """Whether `http-api read` refuses it."""
    waits: bool = False
    """Whether its request is pending for `timeout_ms`, if nothing happens before."""
    delivers: bool = False
    """Whether its reply has jobs that were handed out: they are given back if the client is gone."""

    @property
    def segments(self) -> tuple[str, ...]:
        """The parts of the path."""
        return tuple(self.path.split("/"))

    def among(self, where: str) -> tuple[Parameter, ...]:
        """The parameters in one place."""
        return tuple(parameter for parameter in self.parameters if parameter.where == where)

    def request_words(self, values: Values) -> list[bytes]:
        """The words of the command for a request."""
        by_name = {parameter.name: parameter for parameter in self.parameters}
        found: list[bytes] = []
        for word in self.words:
            if word == OPTIONS:
                for parameter in self.parameters:
                    if f"+{parameter.name}" not in self.words:
                        found += _option(parameter, values)
            elif word.startswith("+"):
                found += _option(by_name[word[1:]], values)
            elif word.startswith("{"):
                value = values.get(word[1:-1])
                if value is not None:
                    found += by_name[word[1:-1]].kind.words(value)
            else:
                found.append(word.encode())
        return found


def _option(parameter: Parameter, values: Values) -> list[bytes]:
    """The words of an option; none if it is not given."""
    value = values.get(parameter.name)
    return parameter.kind.option(parameter.option.encode(), value) if parameter.option and value is not None else []
