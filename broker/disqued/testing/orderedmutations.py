"""Ways to break ordered queues on purpose, to test that the simulator of whole nodes (`orderedsim`) detects them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Mutation:
    """One way to break the nodes."""

    why: str
    mix: str
    patched: tuple[tuple[Any, str, Callable[..., Any]], ...] = ()

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the patches while the context lasts."""
        originals = [(place, name, getattr(place, name)) for place, name, _ in self.patched]
        for place, name, replacement in self.patched:
            setattr(place, name, replacement)
        try:
            yield
        finally:
            for place, name, original in originals:
                setattr(place, name, original)


MUTATIONS: Final[dict[str, Mutation]] = {}
