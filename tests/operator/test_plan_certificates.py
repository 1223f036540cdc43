"""Certificates of a cluster: made, renewed, and replaced with their authority while all members trust each other."""

from __future__ import annotations

import base64
from typing import Final

import pytest

from disque_operator import names, pki
from disque_operator.apivalues import timestamp
from disque_operator.certificate_files import AUTHORITY, CERTIFICATE, KEY
from disque_operator.certificates import AUTHORITY_S, CERTIFICATE_S, DAY_S, RENEWED_S
from disque_operator.spec import IssuerReference, Tls
from support.kubeworld.certificates import KUBELET_S
from support.kubeworld.scenario import Scenario, a_spec
from support.kubeworld.values import condition, short

GRACE_S: Final = 600
HOSTS: Final = ("mail.prod.svc", "mail-members.prod.svc", "*.mail-members.prod.svc")


def encrypted(**fields: object) -> Scenario:
    """Return a settled cluster with TLS."""
    scenario = Scenario(a_spec(tls=Tls(enabled=True, grace_s=GRACE_S, **fields)), load=False)  # type: ignore[arg-type]
    scenario.settle()
    return scenario


def secret(scenario: Scenario, name: str = "mail-tls") -> dict[str, str]:
    live = scenario.world.api.get("Secret", name)
    assert live is not None
    return {key: base64.b64decode(value).decode() for key, value in live["data"].items()}


def put(scenario: Scenario, name: str, **entries: str) -> None:
    data = {key: base64.b64encode(text.encode()).decode() for key, text in entries.items()}
    scenario.world.api.put({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data})
    scenario.world.changed = True


def yours(scenario: Scenario, *dns_names: str, days: float = 365.0) -> dict[str, str]:
    """Return the entries of a Secret with a certificate from elsewhere."""
    now_s = scenario.world.now_s
    authority = pki.new_authority("elsewhere", now_s - DAY_S, now_s + 900 * DAY_S)
    pem = pki.new_certificate(authority, dns_names or HOSTS, now_s - DAY_S, now_s + days * DAY_S)
    return {CERTIFICATE: pem.certificate, KEY: pem.key, AUTHORITY: authority.certificate}


def jump(scenario: Scenario, seconds: float) -> None:
    """Let time pass without a step for each second."""
    scenario.world.now_s += seconds
    scenario.world.changed = True


def serials(scenario: Scenario) -> list[str]:
    """Return the trusted authorities by their keys, and the one that signed the certificate, last."""
    entries = secret(scenario)
    found = [pki.facts(part + "-----END CERTIFICATE-----\n").subject_key for part in split(entries[AUTHORITY])]
    return [*found, pki.facts(entries[CERTIFICATE]).signing_key]


def split(text: str) -> list[str]:
    return text.split("-----END CERTIFICATE-----\n")[:-1]


def pods(scenario: Scenario) -> set[str]:
    return {pod.uid for pod in scenario.world.pods.values()}


def reasons(scenario: Scenario) -> set[str]:
    return {entry["reason"] for entry in scenario.world.status["conditions"]}


def test_certificate_exists_before_the_first_pod() -> None:
    scenario = encrypted()
    order = [short(action) for action in scenario.acted]
    assert order.index("issue mail-authority") < order.index("issue mail-tls") < order.index("apply StatefulSet 3")
    entries = secret(scenario)
    found = pki.facts(entries[CERTIFICATE])
    pki.check(pki.Pem(entries[CERTIFICATE], entries[KEY]), entries[AUTHORITY])
    assert set(HOSTS) <= found.dns_names
    published = scenario.world.api.get("ConfigMap", "mail-ca")
    assert published is not None
    assert published["data"] == {AUTHORITY: entries[AUTHORITY]}
    assert KEY not in secret(scenario, "mail-authority")
    assert entries[KEY] not in str(scenario.world.status)


def test_nothing_is_issued_again_at_rest() -> None:
    scenario = encrypted()
    acted = len(scenario.acted)
    scenario.run(300)
    assert len(scenario.acted) == acted


def test_certificate_is_renewed_a_month_before_its_end_and_no_pod_restarts() -> None:
    scenario = encrypted()
    before, first = pods(scenario), secret(scenario)
    jump(scenario, CERTIFICATE_S - RENEWED_S - 3600)
    scenario.run(60)
    assert secret(scenario) == first
    jump(scenario, 3600)
    scenario.run(60)
    renewed = secret(scenario)
    assert renewed[KEY] != first[KEY]
    assert renewed[AUTHORITY] == first[AUTHORITY]
    assert pki.facts(renewed[CERTIFICATE]).ends_s > pki.facts(first[CERTIFICATE]).ends_s
    assert pods(scenario) == before
    assert [event.reason for event in scenario.events].count("CertificateRenewed") == 1


def test_status_says_where_the_certificate_is_and_when_it_expires() -> None:
    scenario = encrypted()
    found = pki.facts(secret(scenario)[CERTIFICATE])
    assert scenario.world.status["certificate"] == {
        "secretName": "mail-tls",
        "configMap": "mail-ca",
        "issuer": found.issuer,
        "expiresAt": timestamp(found.ends_s),
        "authorities": 1,
    }
    assert scenario.world.status["endpoint"] == "mail.prod.svc:7712"


@pytest.mark.parametrize(
    ("clients", "ports", "endpoint"),
    [("Optional", ["client", "client-tls"], "mail.prod.svc:7712"), ("Disabled", ["client"], "mail.prod.svc:7711")],
)
def test_ports_follow_from_what_clients_may_use(clients: str, ports: list[str], endpoint: str) -> None:
    scenario = encrypted(clients=clients)
    service = scenario.world.api.get("Service", "mail")
    assert service is not None
    assert [port["name"] for port in service["spec"]["ports"]] == ports
    assert scenario.world.status["endpoint"] == endpoint
    assert all(pod.tls == ("client-tls" in ports) for pod in scenario.world.pods.values())


def test_certificate_is_gone_from_the_objects_when_tls_is_switched_off() -> None:
    scenario = encrypted(bus=False)
    scenario.world.edit(tls=Tls())
    scenario.until(lambda: len({pod.tls for pod in scenario.world.pods.values()}) == 2)
    assert scenario.world.api.get("ConfigMap", "mail-ca") is not None, "the other pods are verified by it"
    scenario.settle()
    assert scenario.world.api.get("ConfigMap", "mail-ca") is None
    assert "certificate" not in scenario.world.status
    template = (scenario.world.stateful_set() or {})["spec"]["template"]
    assert "tls" not in str(template)
    assert scenario.world.api.get("Secret", "mail-authority") is not None, "clients trust it when TLS comes back"


def test_deleted_certificate_is_made_again() -> None:
    scenario = encrypted()
    first = secret(scenario)
    scenario.world.api.delete("Secret", "mail-tls")
    scenario.run(60)
    assert secret(scenario)[KEY] != first[KEY]
    assert secret(scenario)[AUTHORITY] == first[AUTHORITY]


def test_another_name_is_added_to_the_certificate() -> None:
    scenario = encrypted()
    tls = scenario.world.spec.tls
    scenario.world.edit(tls=tls.model_copy(update={"dns_names": ("jobs.example.com",)}))
    scenario.run(60)
    assert "jobs.example.com" in pki.facts(secret(scenario)[CERTIFICATE]).dns_names


def test_authority_is_replaced_while_both_are_trusted() -> None:
    """The world raises an error if a member does not trust the certificate of another one at any second."""
    scenario = encrypted()
    before = pods(scenario)
    [old, signer] = serials(scenario)
    assert signer == old
    tls = scenario.world.spec.tls
    scenario.world.edit(tls=tls.model_copy(update={"rotation": 1}))
    scenario.run(30)
    [_, new, signer] = serials(scenario)
    assert signer == old
    assert new != old
    scenario.run(GRACE_S - 60)
    assert serials(scenario) == [old, new, old]
    scenario.run(120)
    assert serials(scenario) == [new, old, new]
    scenario.run(GRACE_S + KUBELET_S)
    assert serials(scenario) == [new, new]
    assert pods(scenario) == before


def test_authority_is_replaced_a_year_before_its_end() -> None:
    scenario = encrypted()
    [old, _] = serials(scenario)
    while scenario.world.now_s < pki.facts(secret(scenario)[AUTHORITY]).begins_s + AUTHORITY_S - 366 * DAY_S:
        jump(scenario, 30 * DAY_S)
        scenario.run(2 * KUBELET_S)
    jump(scenario, 30 * DAY_S)
    scenario.run(3 * GRACE_S)
    assert old not in serials(scenario)


def test_lost_authority_is_replaced_while_the_certificate_continues() -> None:
    scenario = encrypted()
    [old, _] = serials(scenario)
    first = secret(scenario)
    scenario.world.api.delete("Secret", "mail-authority")
    scenario.run(60)
    [_, new, signer] = serials(scenario)
    assert signer == old
    assert secret(scenario)[KEY] == first[KEY]
    scenario.run(3 * GRACE_S)
    assert serials(scenario) == [new, new]


@pytest.mark.parametrize("crash_after", range(1, 9))
def test_operator_that_ends_between_two_steps_continues(crash_after: int) -> None:
    scenario = Scenario(a_spec(tls=Tls(enabled=True, grace_s=GRACE_S)), load=False)
    scenario.crash_after = crash_after
    scenario.settle()
    assert scenario.world.status["phase"] == "Running"


# --- certificates of others -------------------------------------------------------------------------------------------


def waiting(tls: Tls) -> Scenario:
    scenario = Scenario(a_spec(tls=tls), load=False)
    scenario.run(30)
    assert not scenario.world.pods
    return scenario


def test_cluster_waits_for_your_secret() -> None:
    scenario = waiting(Tls(enabled=True, secret_name="own"))
    assert condition(scenario.world.status, "Degraded") == ("True", "CertificateMissing")
    put(scenario, "own", **yours(scenario))
    scenario.settle()
    assert scenario.world.status["phase"] == "Running"
    volumes = (scenario.world.stateful_set() or {})["spec"]["template"]["spec"]["volumes"]
    assert {"name": "certificate", "secret": {"secretName": "own"}} in volumes


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({KEY: "nonsense"}, "tls.key has no private key"),
        ({AUTHORITY: ""}, "ca.crt has no certificate"),
        ({CERTIFICATE: ""}, "tls.crt has no certificate"),
    ],
)
def test_unusable_certificate_is_reported_with_the_reason(entries: dict[str, str], says: str) -> None:
    scenario = waiting(Tls(enabled=True, secret_name="own"))
    put(scenario, "own", **(yours(scenario) | entries))
    scenario.run(30)
    assert condition(scenario.world.status, "Degraded") == ("True", "CertificateInvalid")
    assert says in scenario.world.status["message"]


def test_key_of_another_certificate_is_reported() -> None:
    scenario = waiting(Tls(enabled=True, secret_name="own"))
    put(scenario, "own", **(yours(scenario) | {KEY: yours(scenario)[KEY]}))
    scenario.run(30)
    assert "tls.key does not belong to tls.crt" in scenario.world.status["message"]


def test_certificate_without_the_names_of_the_pods_is_reported() -> None:
    scenario = waiting(Tls(enabled=True, secret_name="own"))
    put(scenario, "own", **yours(scenario, "mail.prod.svc"))
    scenario.run(30)
    assert "issue one for *.mail-members.prod.svc" in scenario.world.status["message"]


def test_your_certificate_that_expires_soon_is_reported_and_the_cluster_continues() -> None:
    scenario = Scenario(a_spec(tls=Tls(enabled=True, secret_name="own")), load=False)
    put(scenario, "own", **yours(scenario, days=3))
    scenario.until(lambda: len(scenario.world.bus.running) == 3)
    scenario.run(60)
    assert condition(scenario.world.status, "Degraded") == ("True", "CertificateExpiring")
    assert condition(scenario.world.status, "Ready")[0] == "True"


def test_secret_of_somebody_else_is_not_overwritten() -> None:
    """The name of the operator's Secret may be that of a certificate that was mounted by `podTemplate` before."""
    scenario = Scenario(a_spec(tls=Tls(enabled=True)), load=False)
    put(scenario, "mail-tls", **yours(scenario))
    kept = secret(scenario)
    scenario.run(60)
    assert secret(scenario) == kept
    assert condition(scenario.world.status, "Degraded") == ("True", "NameTaken")


# --- cert-manager -----------------------------------------------------------------------------------------------------


def by_issuer() -> Tls:
    return Tls(enabled=True, issuer_ref=IssuerReference(name="company", kind="ClusterIssuer"))


def test_issuer_without_cert_manager_is_reported() -> None:
    scenario = waiting(by_issuer())
    assert condition(scenario.world.status, "Degraded") == ("True", "CertManagerMissing")


def test_cert_manager_is_asked_for_the_certificate() -> None:
    scenario = Scenario(a_spec(tls=by_issuer()), load=False)
    scenario.world.certificates.serves_certificates = True
    scenario.run(30)
    assert "CertificatePending" in reasons(scenario)
    requested = scenario.world.api.get("Certificate", "mail-tls")
    assert requested is not None
    assert requested["spec"]["issuerRef"]["name"] == "company"
    assert set(HOSTS) <= set(requested["spec"]["dnsNames"])
    put(scenario, requested["spec"]["secretName"], **yours(scenario))
    scenario.settle()
    assert scenario.world.status["phase"] == "Running"
    assert not any(short(action).startswith("issue") for action in scenario.acted)
    assert names.authority_secret("mail") not in {name for _, name in scenario.world.api.objects}
