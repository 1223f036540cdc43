"""A real broker with the ports and the address that the operator gives it: what clients of each port see."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from disque_operator import names, pki
from disque_operator.addresses import ExternalAddress
from disque_operator.busmode import BusMode
from disque_operator.certificate_files import AUTHORITY, CERTIFICATE, KEY
from disque_operator.observed import Platform
from disque_operator.resources.encryption import TLS_PATH, client_ports, external_ports
from disque_operator.resources.pod_template import pod_template
from disque_operator.servicespec import Exposure
from disque_operator.spec import Spec, Tls
from disqued.client import Client, tls_context
from disqued.testing.ports import LOOPBACK, free_port
from disqued.testing.processes import ServerProcess

HOST: Final = names.pod_host("jobs", "shop", 0)
DAY_S: Final = 86400.0


def certificate(folder: Path) -> ssl.SSLContext:
    """Write a certificate as the operator makes it; return the settings of a client that trusts it."""
    now_s = time.time()
    authority = pki.new_authority("test", now_s - DAY_S, now_s + DAY_S)
    pem = pki.new_certificate(authority, (HOST, LOOPBACK), now_s - DAY_S, now_s + DAY_S)
    for name, text in {CERTIFICATE: pem.certificate, KEY: pem.key, AUTHORITY: authority.certificate}.items():
        (folder / name).write_text(text)
    return tls_context(cafile=str(folder / AUTHORITY))


def words_of(spec: Spec) -> list[str]:
    """Return the arguments of the container, without those about files of the pod."""
    (container,) = pod_template(spec, "disqued:test", BusMode("no"), Platform())["spec"]["containers"]
    words: list[str] = container["args"][1:]
    pairs = zip(words[::2], words[1::2], strict=True)
    return [word for pair in pairs for word in pair if pair[0] not in {"--dir", "--cluster-announce-hostname"}]


@contextmanager
def running(spec: Spec, folder: Path) -> Iterator[tuple[ServerProcess, dict[str, int]]]:
    """Run a broker on free ports, which are returned by the names of the ports of the container."""
    fixed = client_ports(spec) | external_ports(spec)
    ports = {name: free_port() for name in fixed}
    own = {str(number): str(ports[name]) for name, number in fixed.items()} | {str(names.BUS_PORT): str(free_port())}
    words = [own.get(word, word).replace(TLS_PATH, str(folder)) for word in words_of(spec)]
    if not spec.tls.enabled:
        words += ["--port", str(ports["client"])]
    server = ServerProcess(folder, *words, "--cluster-announce-hostname", HOST, port=next(iter(ports.values())))
    try:
        server.wait_until(server.accepts, "it accepts connections")
        yield server, ports
    finally:
        server.kill()


@pytest.mark.parametrize("clients", [None, "Disabled", "Optional", "Required"])
def test_clients_of_each_port_see_the_address_of_their_side(tmp_path: Path, clients: Any) -> None:
    tls = Tls() if clients is None else Tls(enabled=True, clients=clients, bus=False, http=clients == "Disabled")
    spec = Spec(name="jobs", namespace="shop", tls=tls, exposure=Exposure(type="NodePort"))
    context = certificate(tmp_path)
    with running(spec, tmp_path) as (_, ports):
        announced = ExternalAddress(
            "203.0.113.7", 31000 if "external" in ports else 0, 31100 if "external-tls" in ports else 0
        )
        seen = {}
        for number, name in enumerate(ports):
            with Client(
                [f"{LOOPBACK}:{ports[name]}"], tls=context if "tls" in name else False, discover=False
            ) as client:
                if number == 0:
                    client.execute("CONFIG", "SET", "cluster-announce-external", announced.directive())
                [node] = client.hello().nodes
                seen[name] = f"{node.host}:{node.port}"
        expected = {name: f"{HOST}:{number}" for name, number in ports.items() if name.startswith("client")}
        outside = {"external": "203.0.113.7:31000", "external-tls": "203.0.113.7:31100"}
        assert seen == expected | {name: outside[name] for name in ports if name in outside}
        preferred = "external-tls" if "external-tls" in ports else "external"
        assert announced.for_clients() == outside[preferred]
