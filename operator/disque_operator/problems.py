"""What is wrong with a spec though the API server took it.

That is: values that only the broker's own parser can judge, consent that stands in an annotation, and objects that are
older than the rules of the schema. `problems` is what the condition SpecValid says. While there are any, nothing is
changed by the spec.
"""

from __future__ import annotations

from dataclasses import dataclass

from disque_operator.spec import Spec


@dataclass(frozen=True)
class Problem:
    """One thing that can not be done as it is asked for."""

    field: str
    """Where, as `spec.config.hz`."""
    text: str
    """What is wrong and what to write instead."""

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


def problems(spec: Spec) -> tuple[Problem, ...]:
    """All that is wrong; empty when all is well."""
    raise NotImplementedError
