"""Set the version of the project everywhere: `python -m release.version 0.3.0`, after a release, for the next one.

Without a version, the command checks that all files name the same one; `make check` runs it.
`broker/disqued/__init__.py` is the home of the version, and all other files follow it. A release is a commit that
`releases.toml` names. `make dist` builds what users install from it, and the end-to-end tests upgrade from the last.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
HOME: Final = ROOT / "broker" / "disqued" / "__init__.py"
RELEASES: Final = Path(__file__).with_name("releases.toml")
_NUMBER: Final = r"\d+\.\d+\.\d+"
_IMAGE: Final = r"\bdisqued(?:-operator|-spark)?:"
_PLACES: Final[tuple[tuple[str, str], ...]] = (
    ("broker/disqued/__init__.py", '^__version__ = "'),
    ("charts/*/Chart.yaml", "^version: "),
    ("charts/*/Chart.yaml", "^appVersion: "),
    ("manifests/**/*.yaml", _IMAGE),
    ("manifests/plain/kustomization.yaml", "newTag: "),
    ("docs/**/*.md", _IMAGE),
    ("docs/**/*.md", "make image TAG="),
    ("docs/howto/command-line.md", "`disque "),
    ("docs/differences.md", "disqued_version:"),
)
"""Files, and what precedes a version in them."""


def current() -> str:
    """Return the version of these sources."""
    found = re.search(rf'^__version__ = "({_NUMBER})"', HOME.read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None, f"{HOME} has no __version__"
    return found[1]


def last_release() -> tuple[str, str]:
    """Return the version and the commit of the last release."""
    releases: dict[str, str] = tomllib.loads(RELEASES.read_text(encoding="utf-8"))["releases"]
    return list(releases.items())[-1]


def _changes(version: str) -> Iterator[tuple[Path, str]]:
    """Yield the files that name another version, with their new text."""
    for path in sorted({path for pattern, _ in _PLACES for path in ROOT.glob(pattern)}):
        text = path.read_text(encoding="utf-8")
        changed = text
        for pattern, before in _PLACES:
            if path in set(ROOT.glob(pattern)):
                changed = re.sub(rf"({before}){_NUMBER}", rf"\g<1>{version}", changed, flags=re.MULTILINE)
        if changed != text:
            yield path, changed


def outdated() -> list[str]:
    """Return the files that name another version than `current`."""
    return [str(path.relative_to(ROOT)) for path, _ in _changes(current())]


def main(arguments: list[str]) -> int:
    """Run the command and return its exit status."""
    if not arguments:
        for name in outdated():
            print(f"{name} names another version than {current()}", file=sys.stderr)
        return 1 if outdated() else 0
    if len(arguments) != 1 or not re.fullmatch(_NUMBER, arguments[0]):
        print("usage: python -m release.version [MAJOR.MINOR.PATCH]", file=sys.stderr)
        return 2
    for path, text in _changes(arguments[0]):
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
