"""The guide to settings of queues shows the settings as they are."""

from __future__ import annotations

from pathlib import Path

from disqued.core.queues.settings import SETTINGS, Setting

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "queue-settings.md"


def row_of(setting: Setting) -> str:
    """The row of the table."""
    syntax = setting.syntax.replace("|", "\\|")
    return f"| `{setting.name.decode()}` | `{syntax}` | `{setting.default.decode()}` | {setting.text} |"


def test_every_setting_is_a_row_of_the_table() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index("| setting | value | default | meaning |") + 2
    assert lines[start : start + len(SETTINGS) + 1] == [*map(row_of, SETTINGS.values()), ""]
