"""The operator in the cluster, a namespace for each test, what is kept when one fails, and who runs alone."""

from __future__ import annotations

import fcntl
import re
import secrets
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from e2e.support import diagnostics, operators
from e2e.support.cluster import DisqueCluster
from e2e.support.kube import Json, Kube
from e2e.support.load import Load
from e2e.support.settings import RESULTS, Settings
from e2e.support.times import Times, collect, forget

FAILED = pytest.StashKey[bool]()
ALONE = "alone"
INSTALLED = RESULTS / "installed"
"""Is there when this run installed the operator."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that run alone come last: they wait until no other test runs."""
    items.sort(key=lambda item: item.get_closest_marker(ALONE) is not None)


def pytest_configure(config: pytest.Config) -> None:
    """Once for all workers: results of former runs go."""
    if not hasattr(config, "workerinput"):
        forget()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Once for all workers: times are put together, and the operator goes."""
    if hasattr(session.config, "workerinput") or session.config.option.collectonly:
        return
    collect()
    if INSTALLED.exists() and not Settings.read().keep:
        INSTALLED.unlink()
        operators.uninstall(Kube())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let fixtures see that their test failed, and people before all others are done."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
        (folder_of(item) / f"{report.when}.failure.txt").write_text(report.longreprtext)
    return report


def folder_of(item: pytest.Item) -> Path:
    """Where a test may leave what a person wants to see when it failed."""
    folder = RESULTS / re.sub(r"[^\w.-]+", "-", item.name)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def settings() -> Settings:
    return Settings.read()


@pytest.fixture(scope="session")
def kube() -> Kube:
    return Kube()


@pytest.fixture(scope="session")
def times() -> Times:
    return Times()


@pytest.fixture(autouse=True)
def _room(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests run beside each other, but for those that run alone."""
    alone = request.node.get_closest_marker(ALONE) is not None
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "room.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


@pytest.fixture(scope="session")
def operator(kube: Kube, settings: Settings) -> Json:
    """The Deployment of the operator that looks after all namespaces."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        INSTALLED.touch()
        return operators.install(kube, settings.operator_image)


@pytest.fixture
def results(request: pytest.FixtureRequest) -> Path:
    return folder_of(request.node)


@pytest.fixture
def namespaces(kube: Kube, request: pytest.FixtureRequest, results: Path, _room: None) -> Iterator[Callable[[], str]]:
    """Makes namespaces in which only restricted pods may run; they are deleted, their pods at once."""
    made: list[str] = []

    def make() -> str:
        name = f"e2e-{secrets.token_hex(3)}"
        labels = {"pod-security.kubernetes.io/enforce": "restricted", "disque.dev/e2e": "true"}
        kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        made.append(name)
        return name

    yield make
    if request.node.stash.get(FAILED, False):
        for name in made:
            diagnostics.keep(kube, name, results / name)
        diagnostics.keep(kube, operators.deployment()["metadata"]["namespace"], results / "operator")
    for name in made:
        kube.delete("Namespace", name)


@pytest.fixture
def namespace(namespaces: Callable[[], str]) -> str:
    """A namespace of the test's own."""
    return namespaces()


@pytest.fixture
def cluster(kube: Kube, operator: Json, namespace: str, settings: Settings) -> DisqueCluster:
    """A cluster that the test creates and the operator makes."""
    assert operator
    return DisqueCluster(kube, namespace, "shop", settings.image)


@pytest.fixture
def load(kube: Kube, cluster: DisqueCluster, settings: Settings) -> Load:
    """Load for the cluster, from when the test enters it."""
    return Load(kube, cluster, settings.image)
