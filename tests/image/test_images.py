"""The images that `make image` built, run with the restrictions that Kubernetes applies.

The tests are skipped if containers cannot be run, or if the images do not exist.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from disqued import __version__
from image.containers import BROKER, OPERATOR, SPARK, Container, described, needed, run, started

MEGABYTE = 1_000_000
MAX_MEGABYTES = {BROKER: 75, OPERATOR: 110, SPARK: 760}
"""The sizes in docs/operations/image.md and a small margin, so that growth does not go unnoticed."""
STOPS_WITHIN_S = 2.0

IMPORTS = (Path(__file__).parents[2] / "image" / "imports.py").read_text(encoding="utf-8")
IDENTITY = "import os; print(os.getuid(), os.getgid(), os.getpid() == 1)"
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
    """A broker, started by the default command of the image."""
    with started(BROKER) as container:
        container.wait_until_serving()
        yield container


def test_broker_adds_and_returns_jobs(broker: Container) -> None:
    assert broker.ask("disque", "addjob", "mail", "hello", "0").status == 0
    assert broker.ask("disque", "getjob", "from", "mail").output.startswith("mail\n")


def test_broker_runs_as_an_unprivileged_user(broker: Container) -> None:
    assert broker.ask("python3", "-c", IDENTITY).output == "10001 10001 False\n"


def test_only_the_data_directory_is_writable(broker: Container) -> None:
    lines = broker.ask("python3", "-c", WRITES).output.splitlines()
    assert lines.pop() == "/data written"
    assert all(line.endswith("Read-only file system") for line in lines), lines


@pytest.mark.parametrize("options", [(), ("--requirepass", "secret")], ids=["open", "with a password"])
def test_health_check_succeeds_only_if_the_broker_serves(options: tuple[str, ...]) -> None:
    with started(BROKER, "disque-server", *options) as container:
        description = described(BROKER)
        # Docker shows it in `Config`, Podman next to it.
        kind, *check = (description["Config"] | description)["Healthcheck"]["Test"]
        assert kind == "CMD"
        container.wait_for("healthy", lambda answer: answer.status == 0, *check)
        assert run(BROKER, *check).status == 1


@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_signal_stops_the_broker_quickly(name: str) -> None:
    with started(BROKER) as container:
        container.wait_until_serving()
        status, seconds = container.signal(name)
        assert status == 0
        assert seconds < STOPS_WITHIN_S


def test_unknown_option_is_an_error() -> None:
    done = run(BROKER, "disque-server", "--no-such-option", "1")
    assert done.status == 1
    assert "FATAL CONFIG FILE ERROR" in done.errors
    assert "no-such-option" in done.errors


def test_broker_is_the_compiled_build() -> None:
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
def test_all_modules_can_be_imported(image: str, packages: tuple[str, ...]) -> None:
    done = run(image, "python3", "-c", IMPORTS, *packages)
    assert (done.status, done.errors) == (0, "")


@pytest.mark.parametrize("image", [BROKER, OPERATOR])
def test_image_has_no_shell(image: str) -> None:
    assert run(image, "python3", "-c", FOUND, "sh", "bash").output == "[]\n"


@pytest.mark.parametrize("image", [BROKER, OPERATOR, SPARK])
def test_image_has_no_package_managers(image: str) -> None:
    assert run(image, "python3", "-c", FOUND, "apt", "dpkg", "perl", "pip", "setuptools").output == "[]\n"


def test_broker_image_has_no_kubernetes_libraries() -> None:
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
def test_all_modules_have_bytecode(image: str, modules: tuple[str, ...]) -> None:
    done = run(image, "python3", "-c", NOT_COMPILED, *modules)
    assert (done.output, done.errors) == ("[]\n", "")


@pytest.mark.parametrize("image", [BROKER, OPERATOR, SPARK])
def test_labels_describe_the_image(image: str) -> None:
    labels = described(image)["Config"]["Labels"]
    known = {name.removeprefix("org.opencontainers.image."): text for name, text in labels.items()}
    assert known["version"] == __version__
    assert known["title"] == image.rpartition("/")[2].partition(":")[0]
    assert all(known[name] for name in ("description", "revision", "created", "base.name"))


@pytest.mark.parametrize("image", [BROKER, OPERATOR, SPARK])
def test_image_size_is_within_its_limit(image: str) -> None:
    assert described(image)["Size"] < MAX_MEGABYTES[image] * MEGABYTE


@pytest.mark.parametrize("image", [OPERATOR, SPARK])
def test_images_share_their_lower_layers(image: str) -> None:
    broker, other = (described(name)["RootFS"]["Layers"] for name in (BROKER, image))
    shared = [layer for layer in broker if layer in other]
    assert len(shared) >= 2
    assert other[: len(shared)] == shared


def test_ports_and_volume_are_declared() -> None:
    config = described(needed(BROKER))["Config"]
    assert sorted(config["ExposedPorts"]) == ["17711/tcp", "7711/tcp", "9711/tcp"]
    assert list(config["Volumes"]) == ["/data"]
    assert json.dumps(config["Cmd"]) == '["disque-server", "--protected-mode", "no"]'
