"""The page of metrics of a node in virtual time, read as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.samples import Sample

from disqued.metrics.exposition import Encoder, page
from disqued.metrics.queues import Wanted, parse
from disqued.metrics.surroundings import Surroundings
from disqued.testing.local import LocalNode

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


class Page:
    """What one page says."""

    def __init__(self, text: str, *, openmetrics: bool = False) -> None:
        self.text = text
        families = parse_openmetrics(text) if openmetrics else parse_text(text)  # type: ignore[no-untyped-call]
        self._samples: dict[str, list[Sample]] = {}
        self.kinds: dict[str, str] = {}
        for family in families:
            for sample in family.samples:
                self.kinds[sample.name] = family.type
                self._samples.setdefault(sample.name, []).append(sample)

    def value(self, name: str, **labels: str) -> float:
        """The number of the series with just these labels."""
        (found,) = [sample.value for sample in self._samples.get(name, ()) if sample.labels == labels]
        return float(found)

    def by(self, label: str, name: str, **labels: str) -> dict[str, float]:
        """The numbers of a metric by the value of a label, where the others are these."""
        return {
            sample.labels[label]: float(sample.value)
            for sample in self._samples.get(name, ())
            if sample.labels == labels | {label: sample.labels[label]}
        }

    @property
    def names(self) -> set[str]:
        """The names of all series."""
        return set(self._samples)


def around(why_not_ready: str = "") -> Surroundings:
    """A server around a node."""
    return Surroundings(lambda: why_not_ready)


def parts(local: LocalNode, query: str = "", accept: str = "") -> Iterator[bytes]:
    """The page as it is made."""
    wanted = parse(query, local.config.metrics_queues)
    assert isinstance(wanted, Wanted), wanted
    return page(local.node, around(), wanted, Encoder(accept))


def scrape(local: LocalNode, query: str = "", accept: str = "") -> Page:
    """What Prometheus gets."""
    return Page(b"".join(parts(local, query, accept)).decode(), openmetrics=accept == OPENMETRICS)
