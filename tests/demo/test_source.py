"""Counting definitions in source files."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from disqued.demo.source import Count, count_definitions, count_directly, count_file, source_files, standard_library

NESTED = """
import os

class A:
    def method(self):
        async def inner(): ...
        return lambda: None

if os.name:
    def one(): ...
else:
    try:
        def two(): ...
    except OSError:
        def three(): ...
    else:
        def four(): ...
    finally:
        with open("x") as f:
            def five(): ...

match os.name:
    case "posix":
        def six(): ...

for _ in ():
    class B: ...
else:
    class C: ...
"""


def test_definitions_are_found_in_every_block() -> None:
    assert count_definitions(ast.parse(NESTED)) == 11


@pytest.mark.parametrize("name", ["asyncio/base_events.py", "ast.py", "typing.py", "test/test_patma.py"])
def test_count_equals_a_walk_over_the_whole_tree(name: str) -> None:
    path = standard_library() / name
    if not path.exists():
        pytest.skip(f"this Python has no {name}")
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    expected = sum(isinstance(node, kinds) for node in ast.walk(ast.parse(path.read_bytes())))
    assert count_file(path) == Count(definitions=expected)


@pytest.mark.parametrize(
    "content",
    [b"print 'two'", b"x = 1\0", b"# coding: nonsense\n", b"\xff = 1", b"(" * 1000 + b")" * 1000],
    ids=["old syntax", "NUL", "unknown encoding", "not UTF-8", "too deep"],
)
def test_unparsable_file_counts_nothing_and_is_reported(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.py"
    path.write_bytes(content)
    assert count_file(path) == Count(definitions=0, unparsable=1)


def test_invalid_escapes_cause_no_warning(tmp_path: Path) -> None:
    path = tmp_path / "odd.py"
    path.write_text("def f(): return '\\d'")
    assert count_file(path) == Count(definitions=1)


def test_source_files_are_sorted_and_without_installed_packages(tmp_path: Path) -> None:
    for name in ("b.py", "a/c.py", "site-packages/x.py", "__pycache__/y.py", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    (tmp_path / "folder.py").mkdir()
    assert source_files(tmp_path) == ["a/c.py", "b.py"]


def test_folder_without_source_files_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no Python source file"):
        source_files(tmp_path)


def test_processes_together_count_every_file(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.py").write_text("def f(): ...\n" * number)
    (tmp_path / "bad.py").write_text("def")
    done: list[int] = []
    assert count_directly(tmp_path, source_files(tmp_path), 2, done.append) == Count(sum(range(20)), 1)
    assert sum(done) == 21
