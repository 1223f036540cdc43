"""Find phrases that do not belong in the project's texts: `python docs/language/check.py [PATH ...]`.

It reads every tracked text file, or those under the given paths, and prints `file:line: phrase → better wording`. The
exit status is 1 if it found any. The phrases are in phrases.toml, the rules behind them in README.md. Lines of a
paragraph or a comment are joined first, so that a phrase is found where a line is wrapped, and underscores count as
spaces, so that names are read as well.
"""
# ruff: noqa: INP001, T201  (a script that prints what it finds, not a package)

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PHRASES: Final = Path(__file__).with_name("phrases.toml")
ENDINGS: Final = frozenset({
    ".css", ".html", ".importlinter", ".ini", ".js", ".json", ".md", ".py", ".sh", ".toml", ".tpl", ".txt", ".yaml",
})  # fmt: skip
NAMES: Final = frozenset({".ci/run", "Dockerfile", "Makefile", "image/build"})
"""Text files whose names have no ending."""
SKIPPED: Final = ("docs/language/phrases.toml", "tests/docs/test_phrases.py", "tests/vectors/")
"""The list of phrases, its tests, and recorded output of the original."""
_MARK: Final = re.compile(r"\s*(?:#(?![!0-9a-f]{3})|//|\*(?= )|>)?\s*")
"""The indentation and the comment mark of a line."""
_ITEM: Final = re.compile(r"[-*|] |\d+\. |\"\"\"")
"""The beginning of a list item, a table row or a docstring: a line that is not joined to the one above."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase to avoid. `finds` and `passes` are examples of a text that has it and of one that does not."""

    pattern: re.Pattern[str]
    better: str
    finds: tuple[str, ...]
    passes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A phrase in a file."""

    path: str
    line: int
    words: str
    better: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.words} → {self.better}"


def read_phrases() -> tuple[tuple[Phrase, ...], tuple[re.Pattern[str], ...]]:
    """The phrases, and the texts that may contain them."""
    file = tomllib.loads(PHRASES.read_text(encoding="utf-8"))
    phrases = tuple(
        Phrase(re.compile(row["pattern"], re.IGNORECASE), row["better"], tuple(row["finds"]), tuple(row["passes"]))
        for row in file["phrase"]
    )
    return phrases, tuple(re.compile(re.escape(row["text"])) for row in file.get("exception", ()))


def find(path: str, text: str, phrases: tuple[Phrase, ...], exceptions: tuple[re.Pattern[str], ...]) -> list[Finding]:
    """The phrases in a text, in their order."""
    found = []
    for joined, starts, lines in _paragraphs(text):
        allowed = [match.span() for exception in exceptions for match in exception.finditer(joined)]
        for phrase in phrases:
            for match in phrase.pattern.finditer(joined.replace("_", " ")):
                if not any(begin <= match.start() and match.end() <= end for begin, end in allowed):
                    at = match.end() - len(match.group().lstrip(' .;:,—(|"#'))
                    line = lines[bisect_right(starts, at) - 1]
                    found.append(Finding(path, line, joined[at : match.end()], phrase.better))
    return sorted(found, key=lambda finding: finding.line)


def _paragraphs(text: str) -> Iterator[tuple[str, list[int], list[int]]]:
    """Each paragraph as one line, with the offsets at which its lines begin and their numbers."""
    parts: list[str] = []
    starts: list[int] = []
    lines: list[int] = []
    was_comment = False
    for number, line in enumerate(text.splitlines(), start=1):
        mark = _MARK.match(line)
        at = mark.end() if mark else 0
        is_comment = bool(line[:at].strip())
        if parts and (at == len(line) or is_comment != was_comment or _ITEM.match(line.lstrip())):
            yield " ".join(parts), starts, lines
            parts, starts, lines = [], [], []
        was_comment = is_comment
        if at < len(line):
            starts.append(starts[-1] + len(parts[-1]) + 1 if parts else 0)
            parts.append(line[at:].rstrip())
            lines.append(number)
    if parts:
        yield " ".join(parts), starts, lines


def texts(paths: list[str]) -> Iterator[tuple[str, str]]:
    """The tracked text files under the paths, all without any: their names and contents."""
    words = ["git", "ls-files", "-z", "--", *paths]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 - git itself
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if (path.suffix in ENDINGS or name in NAMES) and not name.startswith(SKIPPED) and path.is_file():
            yield name, path.read_text(encoding="utf-8")


def main(paths: list[str]) -> int:
    """Print what is found under the paths; the exit status."""
    phrases, exceptions = read_phrases()
    found = [finding for name, text in texts(paths) for finding in find(name, text, phrases, exceptions)]
    print(*found, sep="\n", end="\n" if found else "")
    if found:
        print(f"{len(found)} phrases in {len({one.path for one in found})} files: see docs/language", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
