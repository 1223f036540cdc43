"""The metrics page of a node in virtual time, parsed as Prometheus parses it."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.samples import Sample

from disqued.metrics.exposition import Encoder, page
from disqued.metrics.queues import Selection, parse
from disqued.metrics.server import ServerFigures
from disqued.testing.local import LocalNode

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


class Page:
    """A parsed page."""

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


def figures(why_not_ready: str = "") -> ServerFigures:
    """The statistics of a server."""
    return ServerFigures(lambda: why_not_ready)


def parts(local: LocalNode, query: str = "", accept: str = "") -> Iterator[bytes]:
    """Generate the page in parts."""
    wanted = parse(query, local.config.metrics_queues)
    assert isinstance(wanted, Selection), wanted
    return page(local.node, figures(), wanted, Encoder(accept))


def scrape(local: LocalNode, query: str = "", accept: str = "") -> Page:
    """Return the page as Prometheus gets it."""
    return Page(b"".join(parts(local, query, accept)).decode(), openmetrics=accept == OPENMETRICS)
