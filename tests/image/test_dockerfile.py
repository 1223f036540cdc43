"""Checks of the Dockerfile that need no build."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
STAGES = re.findall(r"^FROM (\S+) AS (\S+)$", DOCKERFILE, re.MULTILINE)


def stage(name: str) -> str:
    return re.split(rf"^FROM \S+ AS {name}$", DOCKERFILE, flags=re.MULTILINE)[1].partition("\nFROM ")[0]


def test_dockerignore_allows_every_copied_path() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = {line[1:] for line in lines if line.startswith("!")}
    copied = {
        word for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE) for word in line.split()
    }
    assert "build/wheel" in copied  # is made by `make build`, and only needed with WHEEL=given
    sources = copied - {"build/wheel"}
    assert {word.partition("/")[0] for word in sources} == allowed - {"build/wheel"}
    assert all((ROOT / word).exists() for word in sources)


def test_default_target_is_the_broker() -> None:
    assert STAGES[-1] == ("runtime", "broker")


def test_images_are_built_from_scratch() -> None:
    parents = {name: base for base, name in STAGES}
    assert parents["runtime"] == "scratch"
    assert [name for name, base in parents.items() if base == "runtime"] == ["spark", "example", "operator", "broker"]


def test_programs_are_started_without_a_shell() -> None:
    for name in ("spark", "example", "operator", "broker"):
        for line in re.findall(r"^(?:RUN|CMD|ENTRYPOINT) (.*)$|^HEALTHCHECK .*CMD (.*)$", stage(name), re.MULTILINE):
            assert "".join(line).startswith("["), line


def test_programs_of_the_images_are_scripts_of_the_package() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert set(re.findall(r'\["(disque[\w-]*)"', DOCKERFILE)) <= scripts.keys()


def test_user_is_a_number_and_not_root() -> None:
    (user,) = re.findall(r"^USER (.*)$", stage("runtime"), re.MULTILINE)
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user)
