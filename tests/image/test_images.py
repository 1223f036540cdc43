"""The images as they were built by `make image`: run as strangers would, locked down as Kubernetes does it.

Skipped where no containers can be run, or where the images were not built.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from disqued import __version__
from image.containers import BROKER, OPERATOR, SPARK, Container, described, needed, run, started

MEGABYTE = 1_000_000
MOST_MEGABYTES = {BROKER: 75, OPERATOR: 110, SPARK: 760}
"""What docs/operations/image.md states, and a little room: more should not come unseen."""
STOPS_WITHIN_S = 2.0

IMPORTS = (Path(__file__).parents[2] / "image" / "imports.py").read_text(encoding="utf-8")
WHO = "import os; print(os.getuid(), os.getgid(), os.getpid() == 1)"
WRITES = """
import pathlib
for folder in ("/", "/opt/disque", "/etc", "/tmp", "/data"):
    try:
        pathlib.Path(folder, "written").touch()
    except OSError as error:
        print(folder, error.strerror)
    else:
        print(folder, "written")
"""
NOT_COMPILED = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
files = [module.__spec__.cached for module in sys.modules.values() if getattr(module, "__spec__", None)]
import os
print([file for file in files if file and not os.path.exists(file)])
"""
FOUND = """
import importlib.util, shutil, sys
print([name for name in sys.argv[1:] if shutil.which(name) or importlib.util.find_spec(name)])
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[Container]:
    """A broker as the image starts it."""
    with started(BROKER) as container:
        container.wait_until_it_serves()
        yield container


def test_it_serves(broker: Container) -> None:
    assert broker.ask("disque", "addjob", "mail", "hello", "0").status == 0
    assert broker.ask("disque", "getjob", "from", "mail").output.startswith("mail\n")


def test_it_is_nobody_special(broker: Container) -> None:
    assert broker.ask("python3", "-c", WHO).output == "10001 10001 False\n"


def test_it_writes_to_its_data_and_nowhere_else(broker: Container) -> None:
    lines = broker.ask("python3", "-c", WRITES).output.splitlines()
    assert lines.pop() == "/data written"
    assert all(line.endswith("Read-only file system") for line in lines), lines


@pytest.mark.parametrize("options", [(), ("--requirepass", "secret")], ids=["open", "with a password"])
def test_its_health_check_succeeds_when_it_serves_and_fails_when_nobody_does(options: tuple[str, ...]) -> None:
    with started(BROKER, "disque-server", *options) as container:
        description = described(BROKER)
        # Docker has it within `Config`, Podman beside it.
        kind, *check = (description["Config"] | description)["Healthcheck"]["Test"]
        assert kind == "CMD"
        container.wait_for("healthy", lambda answer: answer.status == 0, *check)
        assert run(BROKER, *check).status == 1


@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_a_signal_ends_it_at_once(name: str) -> None:
    with started(BROKER) as container:
        container.wait_until_it_serves()
        status, seconds = container.signal(name)
        assert status == 0
        assert seconds < STOPS_WITHIN_S


def test_a_wrong_option_is_told_of() -> None:
    done = run(BROKER, "disque-server", "--no-such-option", "1")
    assert done.status == 1
    assert "FATAL CONFIG FILE ERROR" in done.errors
    assert "no-such-option" in done.errors


def test_the_broker_is_the_compiled_one() -> None:
    assert "build=compiled" in run(BROKER, "disque-server", "--version").output


@pytest.mark.parametrize(
    ("image", "command"),
    [
        (BROKER, ("disque", "--help")),
        (BROKER, ("disque-check-aof",)),
        (OPERATOR, ("disque", "--help")),
        (OPERATOR, ("disque-operator", "--help")),
        (OPERATOR, ("kubectl-disque", "--help")),
        (SPARK, ("disque", "--help")),
        (SPARK, ("spark-submit", "--help")),
        (SPARK, ("disque-enqueue", "--help")),
        (SPARK, ("disque-drain", "--help")),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_programs_start(image: str, command: tuple[str, ...]) -> None:
    done = run(image, *command)
    assert command[0] in (done.output + done.errors).replace("kubectl disque", "kubectl-disque")


@pytest.mark.parametrize(
    ("image", "packages"),
    [
        (BROKER, ("disqued",)),
        (OPERATOR, ("disqued", "disque_operator")),
        (SPARK, ("disqued", "pyspark_disque", "pyspark_disque_aof", "pipelines")),
    ],
    ids=["broker", "operator", "spark"],
)
def test_nothing_that_modules_import_was_left_out(image: str, packages: tuple[str, ...]) -> None:
    done = run(image, "python3", "-c", IMPORTS, *packages)
    assert (done.status, done.errors) == (0, "")


@pytest.mark.parametrize("image", [BROKER, OPERATOR])
def test_there_is_no_shell(image: str) -> None:
    assert run(image, "python3", "-c", FOUND, "sh", "bash").output == "[]\n"


@pytest.mark.parametrize("image", [BROKER, OPERATOR, SPARK])
def test_there_is_nothing_that_installs(image: str) -> None:
    assert run(image, "python3", "-c", FOUND, "apt", "dpkg", "perl", "pip", "setuptools").output == "[]\n"


def test_the_broker_comes_without_libraries_for_kubernetes() -> None:
    assert run(BROKER, "python3", "-c", FOUND, "kopf", "kubernetes", "aiohttp").output == "[]\n"
    assert run(OPERATOR, "python3", "-c", FOUND, "kopf", "kubernetes").output == "['kopf', 'kubernetes']\n"


@pytest.mark.parametrize(
    ("image", "modules"),
    [
        (BROKER, ("disqued.server.main", "disqued.cli.main")),
        (OPERATOR, ("disque_operator.main", "disque_operator.kubectl.main")),
        (SPARK, ("pyspark_disque", "pipelines.enqueue", "pyspark.sql.worker.plan_data_source_read")),
    ],
)
def test_nothing_is_compiled_when_it_starts(image: str, modules: tuple[str, ...]) -> None:
    done = run(image, "python3", "-c", NOT_COMPILED, *modules)
    assert (done.output, done.errors) == ("[]\n", "")


@pytest.mark.parametrize("image", [BROKER, OPERATOR, SPARK])
def test_labels_say_what_it_is(image: str) -> None:
    labels = described(image)["Config"]["Labels"]
    known = {name.removeprefix("org.opencontainers.image."): text for name, text in labels.items()}
    assert known["version"] == __version__
    assert known["title"] == image.rpartition("/")[2].partition(":")[0]
    assert all(known[name] for name in ("description", "revision", "created", "base.name"))


@pytest.mark.parametrize("image", [BROKER, OPERATOR, SPARK])
def test_it_is_small(image: str) -> None:
    assert described(image)["Size"] < MOST_MEGABYTES[image] * MEGABYTE


@pytest.mark.parametrize("image", [OPERATOR, SPARK])
def test_all_images_share_the_layers_below(image: str) -> None:
    broker, other = (described(name)["RootFS"]["Layers"] for name in (BROKER, image))
    shared = [layer for layer in broker if layer in other]
    assert len(shared) >= 2
    assert other[: len(shared)] == shared


def test_the_ports_and_the_volume_are_declared() -> None:
    config = described(needed(BROKER))["Config"]
    assert sorted(config["ExposedPorts"]) == ["17711/tcp", "7711/tcp", "9711/tcp"]
    assert list(config["Volumes"]) == ["/data"]
    assert json.dumps(config["Cmd"]) == '["disque-server"]'
