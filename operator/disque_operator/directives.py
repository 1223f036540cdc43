"""Which of the broker's directives a spec may give, and what the nodes' configuration is."""

from __future__ import annotations

from collections.abc import Mapping

from disque_operator.spec import Spec


def live(spec: Spec) -> Mapping[str, str]:
    """All directives that CONFIG SET changes, with the values that the spec asks for, defaults for those it lacks.

    Those that are the operator's alone, as addresses and passwords, are not among them.
    """
    raise NotImplementedError


def same(name: str, one: str, other: str) -> bool:
    """Whether two texts are the same value of a directive: `64mb` and `67108864`."""
    raise NotImplementedError
