"""A recording rule: a query that Prometheus evaluates ahead of time, because alerts or dashboards use it often."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Record:
    """A recording rule. The same name may have several rules, which differ in `labels`."""

    name: str
    expr: str
    kept: tuple[str, ...]
    """The labels that the expression keeps."""
    labels: tuple[tuple[str, str], ...] = ()
    """Labels that the rule adds."""

    @property
    def rule(self) -> dict[str, object]:
        """The rule in Prometheus' format."""
        added = {"labels": dict(self.labels)} if self.labels else {}
        return {"record": self.name, "expr": self.expr, **added}

    @property
    def all_labels(self) -> set[str]:
        """The labels of its series."""
        return {*self.kept, *(name for name, _ in self.labels)}
