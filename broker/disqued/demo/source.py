"""The input: source files and the number of definitions in each.

A definition is a function, an asynchronous function or a class, at any depth. A file that is not valid Python of this
version (the tests of the standard library contain some on purpose) counts 0 and is reported as unparsable.
"""

from __future__ import annotations

import ast
import signal
import sysconfig
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TypeAlias

NOT_SOURCE = frozenset({"site-packages", "dist-packages", "__pycache__"})

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""The fields of a statement that hold other statements: only they can contain definitions."""

CHUNK_FILES = 16

Progress: TypeAlias = Callable[[int], None]
"""Called with the number of files that were done since the last call."""


@dataclass(frozen=True, slots=True)
class Count:
    """The content of one file or of several."""

    definitions: int = 0
    unparsable: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.definitions + other.definitions, self.unparsable + other.unparsable)


def standard_library() -> Path:
    """Return the folder of this Python's standard library."""
    return Path(sysconfig.get_path("stdlib"))


def source_files(folder: Path) -> list[str]:
    """Return the names of all source files below `folder`, relative to it and sorted, without installed packages.

    Raises:
        ValueError: there are none.
    """
    paths = (path.relative_to(folder) for path in folder.rglob("*.py"))
    names = sorted(str(path) for path in paths if NOT_SOURCE.isdisjoint(path.parts) and (folder / path).is_file())
    if not names:
        raise ValueError(f"there is no Python source file in {folder}")
    return names


def count_file(path: Path) -> Count:
    """Count the definitions of one file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the parsed files
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: nested too deeply
        return Count(unparsable=1)
    return Count(count_definitions(tree))


def count_definitions(tree: ast.AST) -> int:
    """Return the number of definitions in a syntax tree. Expressions cannot contain any and are not visited."""
    found = 0
    pending = [tree]
    while pending:
        node = pending.pop()
        found += isinstance(node, DEFINITIONS)
        for block in BLOCKS:
            pending.extend(getattr(node, block, ()))
    return found


def count_directly(folder: Path, names: list[str], workers: int, progress: Progress) -> Count:
    """Count all files in `workers` processes without the broker, for comparison."""
    chunks = [names[start : start + CHUNK_FILES] for start in range(0, len(names), CHUNK_FILES)]
    total = Count()
    with ProcessPoolExecutor(workers, get_context("spawn"), ignore_interrupt) as pool:
        try:
            for chunk, count in zip(chunks, pool.map(_count_chunk, [folder] * len(chunks), chunks), strict=True):
                total += count
                progress(len(chunk))
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    return total


def ignore_interrupt() -> None:
    """Ignore Ctrl-C, which reaches all processes of a terminal. The leader handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _count_chunk(folder: Path, names: list[str]) -> Count:
    return sum((count_file(folder / name) for name in names), Count())
