"""Fixtures of the end-to-end tests: operator, namespaces, clusters; diagnostics of failed tests; the `alone` marker."""

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
from e2e.support.times import Times, clear, collect
from e2e.support.zones import ZONE_LABEL, Zoned

FAILED = pytest.StashKey[bool]()
ALONE = "alone"
OWN = "disque.dev/e2e"
"""A label of the namespaces that tests create."""
DELETION_S = 180
INSTALLED = RESULTS / "installed"
"""Exists if this run installed the operator."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run tests marked `alone` last; they wait until no other test runs."""
    items.sort(key=lambda item: item.get_closest_marker(ALONE) is not None)


def pytest_configure(config: pytest.Config) -> None:
    """Clear what earlier runs left, once for all workers."""
    if not hasattr(config, "workerinput"):
        clear()
        INSTALLED.unlink(missing_ok=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Merge the measurements and uninstall the operator, once for all workers."""
    if hasattr(session.config, "workerinput") or session.config.option.collectonly:
        return
    collect()
    if INSTALLED.exists() and not Settings.read().keep:
        INSTALLED.unlink()
        operators.uninstall(Kube())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Record a failure for the fixtures, and write it to a file before the run ends."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
        (folder_of(item) / f"{report.when}.failure.txt").write_text(report.longreprtext)
    return report


def folder_of(item: pytest.Item) -> Path:
    """Return the folder for diagnostics of a test."""
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
def _exclusion(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hold a shared lock during a test, or an exclusive lock if it is marked `alone`.

    A test marked `alone` also waits until the namespaces of earlier tests are gone: deleting their objects keeps the
    operator and the nodes busy.
    """
    alone = request.node.get_closest_marker(ALONE) is not None
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "alone.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        if alone:
            what = "the namespaces of earlier tests are gone"
            Kube().wait("Namespace", "", _none_is_deleted, what, labels=OWN, within_s=DELETION_S)
        yield


def _none_is_deleted(namespaces: list[Json]) -> bool:
    return not any("deletionTimestamp" in item["metadata"] for item in namespaces)


@pytest.fixture(scope="session")
def operator(kube: Kube, settings: Settings) -> Json:
    """The Deployment of the operator, which watches all namespaces.

    It is installed once for all workers: a second time would start it again while a test has stopped it.
    """
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not INSTALLED.exists():
            operators.install(kube, settings.operator_image)
            INSTALLED.touch()
    return operators.deployment()


@pytest.fixture
def no_operator(kube: Kube, operator: Json) -> Iterator[None]:
    """Stops the operator of the other tests, and restores it and the resource definition afterwards."""
    with operators.stopped(kube, operator):
        yield
        for manifest in operators.documents(operators.CRDS):
            kube.apply(manifest)


@pytest.fixture
def results(request: pytest.FixtureRequest) -> Path:
    return folder_of(request.node)


@pytest.fixture
def namespaces(
    kube: Kube, request: pytest.FixtureRequest, results: Path, _exclusion: None
) -> Iterator[Callable[[], str]]:
    """A function that creates a namespace for restricted pods only. They are deleted after the test."""
    created: list[str] = []

    def make() -> str:
        name = f"e2e-{secrets.token_hex(3)}"
        labels = {"pod-security.kubernetes.io/enforce": "restricted", OWN: "true"}
        kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        created.append(name)
        return name

    yield make
    if request.node.stash.get(FAILED, False):
        for name in created:
            diagnostics.collect(kube, name, results / name)
        diagnostics.collect(kube, operators.deployment()["metadata"]["namespace"], results / "operator")
    for name in created:
        kube.delete("Namespace", name)


@pytest.fixture
def namespace(namespaces: Callable[[], str]) -> str:
    """A namespace for the test."""
    return namespaces()


@pytest.fixture
def cluster(kube: Kube, operator: Json, namespace: str, settings: Settings) -> DisqueCluster:
    """A cluster named `shop`, which the test creates."""
    assert operator
    return DisqueCluster(kube, namespace, "shop", settings.image)


@pytest.fixture
def load(kube: Kube, cluster: DisqueCluster, settings: Settings) -> Load:
    """Load for the cluster; it starts when the test enters the context."""
    return Load(kube, cluster, settings.image)


@pytest.fixture
def zones(kube: Kube) -> Iterator[Zoned]:
    """Each Kubernetes node is a zone of its own until the test ends."""
    nodes = [node["metadata"] for node in kube.all("Node")]
    if len(nodes) < 3:
        pytest.skip("the cluster has fewer than three Kubernetes nodes")
    found = {node["name"]: f"zone-{number}" for number, node in enumerate(nodes)}
    before = {node["name"]: (node.get("labels") or {}).get(ZONE_LABEL) for node in nodes}
    for name, zone in found.items():
        kube.patch("Node", name, "", {"metadata": {"labels": {ZONE_LABEL: zone}}})
    yield found
    for name, label in before.items():
        kube.patch("Node", name, "", {"metadata": {"labels": {ZONE_LABEL: label}}})
