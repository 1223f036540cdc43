"""Real brokers with the arguments and certificates that the operator gives them, and its own connections to them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from disque_operator import brokers, names, pki
from disque_operator.brokers import Asked, TlsPeer, UnreachableError
from disque_operator.busmode import SECRET_PATH, BusMode
from disque_operator.certificate_files import AUTHORITY, CERTIFICATE, KEY, TlsFiles, read_files
from disque_operator.observed import Broker
from disque_operator.pki import Pem
from disque_operator.resources.encryption import TLS_PATH, arguments, dns_names
from disque_operator.spec import Spec, Tls
from disque_operator.verification import client_context
from disqued.testing.ports import LOOPBACK, free_port
from disqued.testing.processes import ServerProcess

SPEC: Final = Spec(name="jobs", namespace="shop", tls=Tls(enabled=True, dns_names=("localhost",)))
ENCRYPTED: Final = BusMode("yes")
HOST: Final = names.pod_host("jobs", "shop", 0)
HOUR_S: Final = 3600.0
BUS: Final = 10000


def authority(name: str) -> Pem:
    return pki.new_authority(name, time.time() - HOUR_S, time.time() + 100 * HOUR_S)


def entries(signer: Pem, *trusted: Pem) -> dict[str, str]:
    """Return the entries of a Secret with a new certificate."""
    pem = pki.new_certificate(signer, dns_names(SPEC, ()), time.time() - HOUR_S, time.time() + 50 * HOUR_S)
    bundle = pki.bundle(*(one.certificate for one in trusted or (signer,)))
    return {CERTIFICATE: pem.certificate, KEY: pem.key, AUTHORITY: bundle}


@dataclass
class Mount:
    """A Secret as the kubelet mounts it: files are links into a directory that a link names."""

    path: Path
    secret: dict[str, str] = field(default_factory=dict)
    _version: int = 0

    def publish(self, secret: dict[str, str]) -> None:
        """Replace all files at once."""
        self._version += 1
        version = self.path / f"..{self._version}"
        version.mkdir(parents=True)
        for name, text in secret.items():
            (version / name).write_text(text)
            link = self.path / name
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}")
        (self.path / "..new").symlink_to(version.name)
        (self.path / "..new").rename(self.path / "..data")
        self.secret = secret

    def files(self) -> TlsFiles:
        """Return what the operator reads from the Secret."""
        return read_files(self.secret)


@dataclass
class Cluster:
    """Three brokers."""

    mount: Mount
    ports: tuple[int, ...]
    directory: Path
    running: dict[int, ServerProcess] = field(default_factory=dict)

    def start(self, number: int, spec: Spec = SPEC, bus: BusMode = ENCRYPTED) -> None:
        port = self.ports[number]
        theirs = {
            str(names.TLS_PORT): str(port),
            str(names.BUS_PORT): str(port + BUS),
            str(names.CLIENT_PORT): str(free_port()),
        }
        words = [theirs.get(word, word).replace(TLS_PATH, str(self.mount.path)) for word in arguments(spec, bus)]
        words = [word.replace(SECRET_PATH, str(self.mount.path)) for word in words]
        seeds = " ".join(f"localhost:{one}@{one + BUS}" for one in self.ports)
        home = self.directory / f"n{number}"
        home.mkdir(exist_ok=True)
        self.running[number] = ServerProcess(
            home, *words, "--cluster-seeds", seeds, "--cluster-node-timeout", "1000", port=port
        )

    def look(self, number: int, files: TlsFiles, host: str = HOST) -> Broker:
        """Return what the operator sees with this certificate and these authorities."""
        context = client_context("", files)
        assert context is not None
        address = f"{LOOPBACK}:{self.ports[number]}"
        return asyncio.run(brokers.query("jobs-0", address, (), Asked(), time.time(), TlsPeer(context, host)))[0]

    def reaches(self, number: int, files: TlsFiles, host: str = HOST) -> bool:
        try:
            self.look(number, files, host)
        except UnreachableError:
            return False
        return True

    def is_whole(self) -> bool:
        found = [self.look(number, self.mount.files()) for number in self.running]
        return all(len([peer for peer in one.peers if peer.connected]) == len(found) - 1 for one in found)

    def wait_whole(self) -> None:
        self.running[0].wait_until(self.is_whole, "all brokers are connected")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(Mount(tmp_path / "tls"), (free_port(), free_port(), free_port()), tmp_path)
    with ExitStack() as stack:

        def stop() -> None:
            for broker in made.running.values():
                broker.kill()

        stack.callback(stop)
        yield made


def test_authority_is_replaced_while_brokers_and_operator_stay_connected(cluster: Cluster) -> None:
    """The steps that `certificates` decides, each as the kubelet brings it to the brokers."""
    old, new = authority("old"), authority("new")
    cluster.mount.publish(entries(old))
    for number in range(3):
        cluster.start(number)
    for broker in cluster.running.values():
        broker.wait_until(broker.accepts, "it accepts connections")
    cluster.wait_whole()
    processes = [broker.pid for broker in cluster.running.values()]

    cluster.mount.publish(entries(old, old, new))
    cluster.mount.publish(entries(new, new, old))
    only_new = TlsFiles(Pem("", ""), new.certificate, None, "only to verify")
    for number, broker in cluster.running.items():
        broker.wait_until(partial(cluster.reaches, number, only_new), "it has the new certificate")
    cluster.mount.publish(entries(new))
    assert [broker.pid for broker in cluster.running.values()] == processes

    cluster.running[2].kill()
    cluster.start(2)
    cluster.running[2].wait_until(cluster.running[2].accepts, "it accepts connections")
    cluster.wait_whole()
    assert not cluster.reaches(0, TlsFiles(Pem("", ""), old.certificate, None, "only to verify"))


def test_operator_connects_only_to_the_broker_of_the_pod(cluster: Cluster) -> None:
    cluster.mount.publish(entries(authority("ours")))
    cluster.start(0)
    cluster.running[0].wait_until(cluster.running[0].accepts, "it accepts connections")
    files = cluster.mount.files()
    assert cluster.reaches(0, files)
    assert not cluster.reaches(0, files, "jobs-0.others-members.shop.svc")
    assert not cluster.reaches(0, read_files(entries(authority("theirs"))))


def test_operator_has_a_certificate_for_brokers_that_require_one(cluster: Cluster) -> None:
    cluster.mount.publish(entries(authority("ours")))
    spec = SPEC.model_copy(update={"tls": SPEC.tls.model_copy(update={"client_certificates": "Required"})})
    cluster.start(0, spec)
    cluster.running[0].wait_until(cluster.running[0].accepts, "it accepts connections")
    files = cluster.mount.files()
    assert cluster.reaches(0, files)
    assert not cluster.reaches(0, TlsFiles(Pem("", ""), files.trusted, None, "no certificate"))


@pytest.mark.slow
def test_bus_of_a_running_cluster_is_switched_in_the_steps_of_the_operator(cluster: Cluster) -> None:
    """No TLS and no secret, then both, then another secret: after each restart both brokers are connected."""
    one, other = "a" * 64, "b" * 64
    cluster.mount.publish(entries(authority("ours")) | {"0": one, "0-1": f"{one}\n{other}", "1": other})
    steps = (
        BusMode(),
        BusMode("optional", (0,)),
        BusMode("yes", (0,), required=True),
        BusMode("yes", (0, 1), required=True),
        BusMode("yes", (1,), required=True),
    )
    for bus in steps:
        for number in range(2):
            if number in cluster.running:
                cluster.running[number].kill()
            cluster.start(number, bus=bus)
            broker = cluster.running[number]
            broker.wait_until(broker.accepts, "it accepts connections")
            if len(cluster.running) == 2:
                cluster.wait_whole()


def test_no_authority_means_no_connection() -> None:
    assert client_context("", None) is None
    assert client_context("nonsense", None) is None
