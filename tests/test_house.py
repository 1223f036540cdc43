"""The rules of the house that no tool checks: sizes, headers, leftovers, and that what tables list is tested."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from disqued import errors
from disqued.config.options import OPTIONS
from disqued.core.commands.command import Command
from disqued.node import ROOMS

ROOT = Path(__file__).parents[1]
ME = Path(__file__)
FOLDERS = ("broker", "operator", "spark", "dashboards", "tests", "e2e", "bench")
MAX_MODULE_LINES = 600
MAX_FUNCTION_LINES = 70
SHORTEST_HEADER = 20
GROUPS = {"jobs", "queues", "server", "connection", "cluster"}
LEFTOVERS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|\bbreakpoint\(|\bpdb\b|flaky|reruns")
MOCKS = re.compile(r"unittest\.mock|MagicMock|mocker\b")
UNREASONED = re.compile(r"# noqa(: [A-Z]+[0-9]+(, [A-Z]+[0-9]+)*)?$", re.MULTILINE)


@cache
def sources(*rooms: str) -> dict[str, str]:
    """The Python files of some rooms by path, this one left out: it has to name what it looks for."""
    paths = (path for room in rooms for path in sorted((ROOT / room).rglob("*.py")) if path != ME)
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths}


@cache
def all_tests() -> str:
    return "\n".join(sources("tests").values())


def functions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The functions of a module and how many lines each has."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def reply_errors() -> list[type[errors.ReplyError]]:
    return [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.ReplyError) and value is not errors.ReplyError
    ]


@pytest.mark.parametrize("room", FOLDERS)
def test_no_module_or_function_is_too_long(room: str) -> None:
    long = [path for path, text in sources(room).items() if text.count("\n") > MAX_MODULE_LINES]
    long += [
        f"{path}: {name}"
        for path, text in sources(room).items()
        for name, lines in functions(ast.parse(text))
        if lines > MAX_FUNCTION_LINES
    ]
    assert long == []


def test_every_module_has_a_docstring() -> None:
    silent = [
        path
        for path, text in sources("broker", "operator", "spark", "dashboards", "bench", "e2e").items()
        if len(ast.get_docstring(ast.parse(text)) or "") < SHORTEST_HEADER
    ]
    assert silent == []


@pytest.mark.parametrize("room", FOLDERS)
def test_no_leftovers_remain(room: str) -> None:
    assert [path for path, text in sources(room).items() if LEFTOVERS.search(text)] == []


def test_tests_run_the_real_parts() -> None:
    assert [path for path, text in sources("tests", "e2e").items() if MOCKS.search(text)] == []


def test_every_silenced_rule_has_its_reason() -> None:
    assert [path for path, text in sources(*FOLDERS).items() if UNREASONED.search(text)] == []


@pytest.mark.parametrize("command", ROOMS.commands, ids=lambda command: command.name)
def test_every_command_is_described_and_tested(command: Command) -> None:
    assert command.summary.endswith(".")
    assert command.group in GROUPS
    assert command.syntax or abs(command.arity) == 1, "a command with arguments shows them"
    assert command.complexity
    assert command.since
    assert re.search(rf"""["'b ]{command.name}["' ]""", all_tests(), re.IGNORECASE), "no test names it"


def test_every_directive_is_on_the_reference_page() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    assert [option.name for option in OPTIONS if f"| `{option.name}` |" not in page] == []


def test_small_lock_pins_the_same_versions_as_the_complete_one() -> None:
    small, complete = (
        set(re.findall(r"^(\S+==\S+)", (ROOT / name).read_text(), re.MULTILINE))
        for name in ("requirements-run.lock", "requirements.lock")
    )
    assert small - complete == set(), "run: make lock"
    names = {pin.partition("==")[0] for pin in small}
    assert names.isdisjoint({"pyspark", "pytest", "mypy", "matplotlib", "kubernetes"}), "make run must stay quick"


def test_the_license_is_the_same_everywhere() -> None:
    name = "BSD-3-Clause"
    assert (
        (ROOT / "LICENSE")
        .read_text()
        .startswith("BSD 3-Clause License\n\nCopyright (c) 2026, the disqued contributors\n")
    )
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"] == name
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert dockerfile.count(f'org.opencontainers.image.licenses="{name}"') == dockerfile.count("image.title=") == 3
    for chart in (ROOT / "charts").glob("*/Chart.yaml"):
        assert f"artifacthub.io/license: {name}\n" in chart.read_text()
    assert "(LICENSE)" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("error", reply_errors(), ids=lambda error: error.__name__)
def test_every_error_is_named_in_a_test(error: type[errors.ReplyError]) -> None:
    assert re.search(rf"\b{error.__name__}\b", all_tests())
