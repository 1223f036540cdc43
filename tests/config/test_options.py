"""The table of directives, `Config` and the reference page say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_origin, get_type_hints

import pytest

from disqued.config import OPTIONS, Config, Option
from disqued.resp.words import split_words

PAGE = Path(__file__).parent.parent.parent / "docs" / "configuration.md"


def test_every_directive_is_a_typed_attribute() -> None:
    hints = get_type_hints(Config)
    assert list(hints) == [option.attribute for option in OPTIONS]
    config = Config()
    for name, hint in hints.items():
        value = getattr(config, name)
        assert isinstance(value, get_origin(hint) or hint), name
        assert isinstance(value, bool) == (hint is bool), name


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_a_default_reads_back_as_it_is_written(option: Option[Any]) -> None:
    assert option.kind.is_storable(option.default)
    written = option.kind.write(option.default)
    if written:
        assert option.kind.read(split_words(written) or ()) == option.default
