"""Certificates with the hosts by which clients outside of Kubernetes verify members."""

from __future__ import annotations

import base64
import time
from typing import Any, Final

import pytest

from disque_operator import pki
from disque_operator.certificate_files import AUTHORITY, CERTIFICATE, KEY
from disque_operator.pki import CertificateFacts
from disque_operator.servicespec import Exposure
from disque_operator.spec import IssuerReference, Tls
from support.kubeworld.scenario import FaultRates, Scenario, a_spec, check_settled, recover
from support.kubeworld.values import condition

DAY_S: Final = 86400.0
TLS: Final = Tls(enabled=True)
NAMED: Final = Exposure(type="ClusterIP", host="{pod}.jobs.example.com", tls_port=443)
NODE_PORT: Final = Exposure(type="NodePort")
NAMES: Final = {f"mail-{ordinal}.jobs.example.com" for ordinal in range(3)}
INSIDE: Final = ("mail.prod.svc", "mail-members.prod.svc", "*.mail-members.prod.svc")


def exposed(exposure: Exposure, **fields: object) -> Scenario:
    scenario = Scenario(a_spec(**{"exposure": exposure, "tls": TLS} | fields), load=False)
    scenario.settle()
    return scenario


def certificate(scenario: Scenario) -> CertificateFacts:
    live = scenario.world.api.get("Secret", "mail-tls")
    assert live is not None
    return pki.facts(base64.b64decode(live["data"][CERTIFICATE]).decode())


def uids(scenario: Scenario) -> set[str]:
    return {pod.uid for pod in scenario.world.pods.values()}


def put_certificate(scenario: Scenario, name: str, *hosts: str) -> None:
    now_s = scenario.world.now_s
    authority = pki.new_authority("elsewhere", now_s - DAY_S, now_s + 900 * DAY_S)
    pem = pki.new_certificate(authority, (*INSIDE, *hosts), now_s - DAY_S, now_s + 365 * DAY_S)
    entries = {CERTIFICATE: pem.certificate, KEY: pem.key, AUTHORITY: authority.certificate}
    data = {key: base64.b64encode(text.encode()).decode() for key, text in entries.items()}
    scenario.world.api.put({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data})
    scenario.world.changed = True


def test_names_of_members_are_in_the_certificate_and_follow_the_members() -> None:
    scenario = exposed(NAMED)
    assert certificate(scenario).dns_names >= NAMES
    before = uids(scenario)
    scenario.world.edit(replicas=4)
    scenario.settle()
    assert certificate(scenario).covers("mail-3.jobs.example.com")
    scenario.world.edit(replicas=3)
    scenario.settle()
    assert not certificate(scenario).covers("mail-3.jobs.example.com")
    assert uids(scenario) == before, "no pod restarts"
    check_settled(scenario)


def test_name_of_a_member_that_is_drained_stays_in_the_certificate() -> None:
    scenario = exposed(NAMED)
    scenario.world.edit(replicas=2)
    while "mail-2" in scenario.world.pods:
        assert certificate(scenario).covers("mail-2.jobs.example.com")
        scenario.run(1)


def test_addresses_of_nodes_are_in_the_certificate() -> None:
    scenario = exposed(NODE_PORT)
    assert certificate(scenario).addresses == {"192.0.2.0", "192.0.2.1", "192.0.2.2"}
    assert condition(scenario.world.status, "Exposed") == ("True", "AddressesKnown")


def test_certificate_is_issued_again_for_a_new_address_but_not_for_one_that_is_gone() -> None:
    scenario = exposed(NODE_PORT, replicas=2)
    assert certificate(scenario).addresses == {"192.0.2.0", "192.0.2.1"}
    scenario.world.cordoned.add("m1")
    scenario.world.delete_pod("mail-1")
    scenario.settle()
    moved = certificate(scenario)
    assert moved.covers("192.0.2.2")
    scenario.world.edit(replicas=1)
    scenario.settle()
    assert certificate(scenario) == moved
    check_settled(scenario)


def test_host_name_of_a_load_balancer_is_in_the_certificate() -> None:
    scenario = exposed(Exposure(type="LoadBalancer"))
    scenario.run(60)
    live = scenario.world.api.get("Service", "mail-0-external")
    assert live is not None
    live["status"] = {"loadBalancer": {"ingress": [{"hostname": "lb-7.example.net"}]}}
    scenario.world.api.touch(live)
    scenario.world.changed = True
    scenario.run(30)
    assert "lb-7.example.net" in certificate(scenario).dns_names
    assert len(certificate(scenario).addresses) == 2


def test_certificate_has_no_host_outside_if_clients_use_no_tls() -> None:
    scenario = exposed(NODE_PORT, tls=Tls(enabled=True, clients="Disabled"))
    assert certificate(scenario).addresses == frozenset()


def test_issuer_is_asked_for_names_and_not_for_addresses() -> None:
    tls = Tls(enabled=True, issuer_ref=IssuerReference(name="company"))
    for exposure, added in ((NAMED, NAMES), (NODE_PORT, set[str]())):
        scenario = Scenario(a_spec(exposure=exposure, tls=tls), load=False)
        scenario.world.certificates.serves_certificates = True
        scenario.run(30)
        requested = scenario.world.api.get("Certificate", "mail-tls")
        assert requested is not None
        assert {name for name in requested["spec"]["dnsNames"] if "example.com" in name} == added
        put_certificate(scenario, "mail-tls", *added)
        scenario.settle()
        expected = ("True", "AddressesKnown") if added else ("False", "NotInCertificate")
        assert condition(scenario.world.status, "Exposed") == expected
        requested = scenario.world.api.get("Certificate", "mail-tls")
        assert requested is not None
        assert {name for name in requested["spec"]["dnsNames"] if "example.com" in name} == added


@pytest.mark.parametrize("hosts", [sorted(NAMES), ["*.jobs.example.com"]], ids=str)
def test_certificate_of_yours_without_the_names_is_reported(hosts: list[str]) -> None:
    scenario = Scenario(a_spec(exposure=NAMED, tls=Tls(enabled=True, secret_name="own", bus=False)), load=False)
    put_certificate(scenario, "own")
    scenario.settle()
    assert condition(scenario.world.status, "Ready")[0] == "True"
    assert condition(scenario.world.status, "Exposed") == ("False", "NotInCertificate")
    put_certificate(scenario, "own", *hosts)
    scenario.settle()
    assert condition(scenario.world.status, "Exposed") == ("True", "AddressesKnown")


@pytest.mark.parametrize(
    ("host", "covered"),
    [
        ("jobs.example.com", True),
        ("a.jobs.example.com", True),
        ("a.b.jobs.example.com", False),
        ("192.0.2.1", True),
        ("192.0.2.2", False),
        ("2001:db8:0:0::1", True),
    ],
)
def test_hosts_that_a_certificate_covers(host: str, covered: bool) -> None:
    now_s = time.time()
    authority = pki.new_authority("test", now_s, now_s + DAY_S)
    hosts = ("jobs.example.com", "*.jobs.example.com", "192.0.2.1", "2001:db8::1")
    pem = pki.new_certificate(authority, hosts, now_s, now_s + DAY_S)
    assert pki.facts(pem.certificate).covers(host) == covered


@pytest.mark.parametrize("crash_after", range(8, 22, 2))
def test_operator_that_ends_between_two_steps_continues(crash_after: int) -> None:
    fields: dict[str, Any] = {"exposure": NODE_PORT, "tls": TLS}
    scenario = Scenario(a_spec(**fields), load=False)
    scenario.crash_after = crash_after
    scenario.settle()
    check_settled(scenario)
    assert condition(scenario.world.status, "Exposed") == ("True", "AddressesKnown")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_exposed_cluster_with_tls_settles_after_faults(seed: int) -> None:
    scenario = Scenario(a_spec(exposure=NODE_PORT, tls=TLS), seed)
    scenario.settle()
    scenario.rates = FaultRates(crash=0.1, stale=0.1, conflict=0.05, fault=0.06)
    scenario.run(300)
    recover(scenario)
