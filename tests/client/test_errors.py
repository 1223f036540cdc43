"""The first word of an error reply selects its class."""

from __future__ import annotations

import pytest

from disqued.client import errors
from disqued.client.errors import BY_PREFIX, ResponseError, response_error


@pytest.mark.parametrize(("prefix", "kind"), BY_PREFIX.items(), ids=BY_PREFIX)
def test_known_prefix_selects_its_class(prefix: str, kind: type[ResponseError]) -> None:
    error = response_error(f"{prefix} some text")
    assert type(error) is kind
    assert error.prefix == prefix
    assert str(error) == f"{prefix} some text"


@pytest.mark.parametrize("text", ["ERR syntax error", "NOREPLY something", "", "noauth"])
def test_unknown_prefix_is_a_plain_response_error(text: str) -> None:
    assert type(response_error(text)) is ResponseError


def test_every_response_error_class_has_a_prefix() -> None:
    kinds = {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, ResponseError) and kind is not ResponseError
    }
    same_prefix = {errors.AlreadyExists, errors.JobExists}
    assert kinds - same_prefix == set(BY_PREFIX.values())
    assert all(issubclass(kind, errors.AlreadyExists) for kind in (errors.JobExists, BY_PREFIX["EXISTS"]))


def test_documentation_of_not_replicated_explains_unknown_outcomes() -> None:
    assert errors.NotReplicated.__doc__ is not None
    assert "UNKNOWN" in errors.NotReplicated.__doc__
    assert "idempotent" in errors.NotReplicated.__doc__


@pytest.mark.parametrize("kind", [errors.ConnectionFailed, errors.ConnectionLost])
def test_connection_errors_are_builtin_connection_errors(kind: type[Exception]) -> None:
    assert issubclass(kind, ConnectionError)
    assert issubclass(kind, errors.DisqueError)
