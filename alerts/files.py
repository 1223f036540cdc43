"""The files that are made of the alerts: the rules, the index of the runbooks, the head of each of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml

from alerts.alert import Alert
from alerts.all import GROUPS
from dashboards.all import BOARDS

ROOT: Final = Path(__file__).parents[1]
RULES: Final = ROOT / "alerts" / "disque.rules.yaml"
PAGES: Final = ROOT / "docs" / "runbooks"
INDEX: Final = PAGES / "README.md"
BEGIN: Final = "<!-- rule: written by python -m alerts -->\n"
END: Final = "<!-- end of rule -->\n"
LIST: Final = ("<!-- alerts: written by python -m alerts -->\n", "<!-- end of alerts -->\n")

_HEAD: Final = (
    "# Alerting rules for Prometheus, written by `python -m alerts` from alerts/*.py. Pages: docs/runbooks.\n"
)


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # yaml ships no types
    """Writes texts of several lines as blocks."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def rules() -> str:
    """The rules file."""
    groups = [{"name": group.name, "rules": [alert.rule for alert in group.alerts]} for group in GROUPS]
    text: str = yaml.dump({"groups": groups}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=4096)
    return _HEAD + text


def head(alert: Alert) -> str:
    """What a page says of its rule."""
    board = next(board for board in BOARDS if board.uid == alert.board)
    lasting = "at once" if alert.lasting == "0m" else f"after {alert.lasting}"
    return (
        f"{alert.severity.value.capitalize()}, {lasting}. Dashboard: {board.title}.\n\n```promql\n{alert.expr}\n```\n\n"
    )


def index() -> Iterator[str]:
    """The list of all pages."""
    for group in GROUPS:
        yield f"\n## {group.title}\n\n| alert | severity | after | says |\n|---|---|---|---|\n"
        for alert in group.alerts:
            row = (f"[{alert.name}]({alert.name}.md)", alert.severity.value, alert.lasting, _plain(alert.summary))
            yield f"| {' | '.join(row)} |\n"
    yield "\n"


def _plain(message: str) -> str:
    """A message without the words of its template."""
    for template, word in _WORDS.items():
        message = message.replace(template, word)
    return message


_WORDS: Final = {
    "{{ with $labels.cluster }}{{ $labels.namespace }}/{{ . }}{{ else }}the cluster{{ end }}": "CLUSTER",
    "{{ with $labels.queue }}the queue {{ . }}{{ else }}a queue{{ end }}": "a queue",
    "{{ $labels.instance }}": "NODE",
    "{{ $labels.address }}": "NODE",
    "{{ $labels.queue }}": "QUEUE",
    "{{ $labels.direction }}": "in or out",
}


def between(text: str, marks: tuple[str, str], new: str) -> str:
    """A text with what stands between two lines of it replaced. Raises `ValueError` when they are not there."""
    before, begin, rest = text.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise ValueError(f"There are no lines {marks[0].strip()!r} and {marks[1].strip()!r}: put them back")
    return before + begin + new + end + after


def generated() -> Iterator[tuple[Path, str]]:
    """All files with what they should be."""
    yield RULES, rules()
    yield INDEX, between(INDEX.read_text("utf-8"), LIST, "".join(index()))
    for group in GROUPS:
        for alert in group.alerts:
            page = PAGES / f"{alert.name}.md"
            yield page, between(page.read_text("utf-8"), (BEGIN, END), head(alert))
