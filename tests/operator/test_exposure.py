"""Clients outside of Kubernetes: services and addresses of members, announced while brokers run."""

from __future__ import annotations

from typing import Any, Final

import pytest

from disque_operator import names
from disque_operator.addresses import ExternalAddress
from disque_operator.apivalues import Json
from disque_operator.members import ClusterView
from disque_operator.servicespec import Exposure
from disque_operator.spec import Tls
from support.kubeworld.scenario import Scenario, a_spec, check_settled
from support.kubeworld.services import LOAD_BALANCER_S
from support.kubeworld.values import changed, condition, decided, pod, reported

NODE_PORT: Final = Exposure(type="NodePort")
BALANCED: Final = Exposure(type="LoadBalancer")
NAMED: Final = Exposure(type="ClusterIP", host="{pod}.jobs.example.com", tls_port=443)


def exposed(exposure: Exposure, **fields: object) -> Scenario:
    """Return a settled cluster whose members clients outside of Kubernetes reach."""
    scenario = Scenario(a_spec(exposure=exposure, **fields), load=False)
    scenario.settle()
    return scenario


def service(scenario: Scenario, ordinal: int = 0) -> Json:
    live = scenario.world.api.get("Service", f"mail-{ordinal}-external")
    assert live is not None
    return live


def services(scenario: Scenario) -> list[str]:
    return sorted(name for kind, name in scenario.world.api.objects if kind == "Service" and "external" in name)


def announced(scenario: Scenario) -> list[str]:
    brokers = scenario.world.bus.running
    return [brokers[name].config["cluster-announce-external"] for name in sorted(brokers)]


def addresses(scenario: Scenario) -> list[str]:
    return [entry["address"] for entry in scenario.world.status["exposure"]["addresses"]]


def uids(scenario: Scenario) -> set[str]:
    return {one.uid for one in scenario.world.pods.values()}


def view_of(scenario: Scenario) -> ClusterView:
    world = scenario.world
    return ClusterView(world.spec, world.observe(), world.now_s)


# --- services and addresses -------------------------------------------------------------------------------------------


def test_each_member_has_a_service_that_selects_only_its_pod() -> None:
    scenario = exposed(NODE_PORT)
    assert services(scenario) == ["mail-0-external", "mail-1-external", "mail-2-external"]
    found = service(scenario, 1)["spec"]
    assert found["selector"]["statefulset.kubernetes.io/pod-name"] == "mail-1"
    assert found["type"] == "NodePort"
    assert "publishNotReadyAddresses" not in found
    assert [(port["name"], port["targetPort"]) for port in found["ports"]] == [("external", "external")]


def test_node_ports_are_announced_with_the_address_of_the_node_of_the_pod() -> None:
    scenario = exposed(NODE_PORT)
    ports = [service(scenario, ordinal)["spec"]["ports"][0]["nodePort"] for ordinal in range(3)]
    expected = [f"192.0.2.{ordinal}:{port}" for ordinal, port in enumerate(ports)]
    assert announced(scenario) == addresses(scenario) == expected
    assert condition(scenario.world.status, "Exposed") == ("True", "AddressesKnown")
    assert [event.reason for event in scenario.events].count("Exposed") == 1


def test_load_balancers_are_announced_when_they_have_addresses() -> None:
    scenario = Scenario(a_spec(exposure=BALANCED), load=False)
    scenario.until(lambda: condition(scenario.world.status, "Ready")[0] == "True" if scenario.world.status else False)
    assert condition(scenario.world.status, "Exposed") == ("False", "LoadBalancerPending")
    assert announced(scenario) == ["", "", ""]
    assert addresses(scenario) == []
    scenario.run(int(LOAD_BALANCER_S) + 10)
    scenario.settle()
    given = [service(scenario, ordinal)["status"]["loadBalancer"]["ingress"][0]["ip"] for ordinal in range(3)]
    assert announced(scenario) == addresses(scenario) == [f"{address}:7711" for address in given]
    assert condition(scenario.world.status, "Exposed") == ("True", "AddressesKnown")


def test_cluster_without_load_balancers_is_ready_and_says_what_is_missing() -> None:
    scenario = Scenario(a_spec(exposure=BALANCED), load=False)
    scenario.world.services.has_load_balancers = False
    scenario.settle()
    assert condition(scenario.world.status, "Ready")[0] == "True"
    assert condition(scenario.world.status, "Progressing")[0] == "False"
    assert condition(scenario.world.status, "Exposed") == ("False", "LoadBalancerPending")


def test_changed_address_of_a_load_balancer_is_announced() -> None:
    scenario = exposed(BALANCED)
    live = service(scenario)
    live["status"] = {"loadBalancer": {"ingress": [{"hostname": "lb-7.example.net"}]}}
    scenario.world.api.touch(live)
    scenario.world.changed = True
    scenario.run(5)
    assert announced(scenario)[0] == addresses(scenario)[0] == "lb-7.example.net:7711"


def test_load_balancer_of_both_families_is_announced_by_the_preferred_one() -> None:
    ingress = [{"ip": "198.51.100.7"}, {"ip": "2001:db8::7"}]
    both = Exposure(type="LoadBalancer", ip_families=("IPv6", "IPv4"), ip_family_policy="PreferDualStack")
    for exposure, host in ((BALANCED, "198.51.100.7"), (both, "[2001:db8::7]")):
        scenario = exposed(exposure)
        live = service(scenario)
        live["status"] = {"loadBalancer": {"ingress": ingress}}
        assert f"mail-0: CONFIG SET cluster-announce-external {host}:7711" in decided(view_of(scenario))


def test_host_names_are_those_of_the_pattern() -> None:
    scenario = exposed(NAMED)
    assert announced(scenario) == [f"mail-{ordinal}.jobs.example.com:7711" for ordinal in range(3)]
    by_number = Exposure(type="NodePort", host="jobs-{ordinal}.example.com")
    assert [one.partition(":")[0] for one in announced(exposed(by_number))] == [
        f"jobs-{ordinal}.example.com" for ordinal in range(3)
    ]


def test_annotations_may_name_the_member() -> None:
    key = "external-dns.alpha.kubernetes.io/hostname"
    scenario = exposed(Exposure(type="LoadBalancer", annotations={key: "jobs-{ordinal}.example.com"}))
    assert service(scenario, 2)["metadata"]["annotations"][key] == "jobs-2.example.com"


def test_node_ports_may_be_chosen() -> None:
    scenario = exposed(Exposure(type="NodePort", node_port=31000))
    assert [one.rpartition(":")[2] for one in announced(scenario)] == ["31000", "31001", "31002"]


# --- ports ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clients", "ports", "directive", "address"),
    [
        ("Disabled", ["external"], "mail-0.jobs.example.com:7711", "mail-0.jobs.example.com:7711"),
        ("Optional", ["external", "external-tls"], "mail-0.jobs.example.com:7711@443", "mail-0.jobs.example.com:443"),
        ("Required", ["external-tls"], "mail-0.jobs.example.com:443@443", "mail-0.jobs.example.com:443"),
    ],
)
def test_ports_follow_from_what_clients_may_use(clients: Any, ports: list[str], directive: str, address: str) -> None:
    scenario = exposed(NAMED, tls=Tls(enabled=True, clients=clients))
    assert [port["name"] for port in service(scenario)["spec"]["ports"]] == ports
    assert all(one.external == set(ports) for one in scenario.world.pods.values())
    assert announced(scenario)[0] == directive
    assert addresses(scenario)[0] == address


def test_addresses_with_colons_are_in_brackets() -> None:
    assert ExternalAddress("2001:db8::1", 7711, 7712).directive() == "[2001:db8::1]:7711@7712"
    assert ExternalAddress("2001:db8::1", 7711).for_clients() == "[2001:db8::1]:7711"


ADDRESSES: Final = (
    ("Hostname", "node-1"),
    ("InternalIP", "10.0.0.1"),
    ("InternalIP", "fd00::1"),
    ("ExternalIP", "203.0.113.1"),
)


@pytest.mark.parametrize(
    ("fields", "host"),
    [
        ({}, "203.0.113.1"),
        ({"address_types": ("InternalIP",)}, "10.0.0.1"),
        ({"address_types": ("InternalIP",), "ip_families": ("IPv6",)}, "[fd00::1]"),
        ({"address_types": ("InternalDNS", "Hostname")}, "node-1"),
        ({"ip_families": ("IPv6",)}, "203.0.113.1"),
    ],
    ids=str,
)
def test_address_of_a_node_is_that_of_the_preferred_type(fields: dict[str, Any], host: str) -> None:
    scenario = exposed(NODE_PORT)
    scenario.world.edit(exposure=Exposure(type="NodePort", **fields))
    view = pod(view_of(scenario), 1, node_addresses=ADDRESSES)
    (command,) = [action for action in decided(view) if action.startswith("mail-1: CONFIG SET")]
    assert command.split()[-1].rpartition(":")[0] == host


# --- changes ----------------------------------------------------------------------------------------------------------


def test_exposing_a_cluster_replaces_its_pods_one_by_one_and_changing_the_type_replaces_none() -> None:
    scenario = Scenario(load=False)
    scenario.settle()
    first = uids(scenario)
    scenario.world.edit(exposure=NODE_PORT)
    scenario.run(5)
    scenario.until(lambda: condition(scenario.world.status, "Exposed") == ("False", "PortsPending"))
    scenario.settle()
    assert not first & uids(scenario)
    check_settled(scenario)
    pods = uids(scenario)
    for exposure in (BALANCED, NAMED, Exposure(type="ClusterIP", host="jobs-{ordinal}.example.com"), NODE_PORT):
        scenario.world.edit(exposure=exposure)
        scenario.run(60)
        scenario.settle()
        check_settled(scenario)
    assert uids(scenario) == pods


def test_exposure_is_no_update_of_the_operator() -> None:
    """Only the spec changed, so that pods are replaced at once, not in the window for upgrades."""
    scenario = Scenario(load=False)
    scenario.settle()
    scenario.world.edit(exposure=NODE_PORT)
    scenario.run(10)
    live = scenario.world.stateful_set()
    assert live is not None
    assert names.UPDATE not in live["metadata"]["annotations"]


def test_removed_exposure_ends_at_once() -> None:
    scenario = exposed(NODE_PORT)
    scenario.world.edit(exposure=None)
    scenario.run(10)
    assert services(scenario) == []
    scenario.settle()
    assert announced(scenario) == ["", "", ""]
    assert not any(one.external for one in scenario.world.pods.values())
    assert "exposure" not in scenario.world.status
    assert "Exposed" not in {entry["type"] for entry in scenario.world.status["conditions"]}
    assert {"mail", "mail-members"} == {name for kind, name in scenario.world.api.objects if kind == "Service"}


def test_service_of_a_removed_member_is_deleted_when_its_pod_is_gone() -> None:
    scenario = exposed(NODE_PORT)
    scenario.world.edit(replicas=2)
    while "mail-2" in scenario.world.pods:
        assert "mail-2-external" in services(scenario), "it serves until the member is drained and gone"
        scenario.run(1)
    scenario.settle()
    assert services(scenario) == ["mail-0-external", "mail-1-external"]
    scenario.world.edit(replicas=4)
    scenario.settle()
    assert services(scenario) == [f"mail-{ordinal}-external" for ordinal in range(4)]
    check_settled(scenario)


def test_service_that_waits_for_the_end_of_its_load_balancer_is_deleted_once_and_not_announced() -> None:
    scenario = exposed(BALANCED)
    scenario.run(60)
    service(scenario)["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    view = view_of(scenario)
    assert reported(view, "Exposed") == ("False", "ServicePending")
    assert "mail-0: CONFIG SET cluster-announce-external " in decided(view)
    deleted = [action for action in decided(changed(view, exposure=None)) if action.startswith("delete")]
    assert deleted == ["delete Service mail-1-external", "delete Service mail-2-external"]


def test_service_that_the_api_server_may_refuse_is_applied_after_everything_else() -> None:
    """A node port that is taken, or a quota for load balancers, ends the round."""
    scenario = exposed(NODE_PORT)
    scenario.world.api.delete("Service", "mail-1-external")
    found = decided(changed(view_of(scenario), config={"hz": "20"}))
    assert found[-1] == "apply Service mail-1-external"
    assert "mail-2: CONFIG SET hz 20" in found


def test_hibernated_cluster_keeps_its_services() -> None:
    scenario = exposed(BALANCED)
    before = [service(scenario, ordinal)["metadata"]["uid"] for ordinal in range(3)]
    scenario.world.edit(hibernate=True)
    scenario.until(lambda: not scenario.world.pods)
    scenario.run(60)
    assert condition(scenario.world.status, "Exposed") == ("False", "NoPods")
    scenario.world.edit(hibernate=False)
    scenario.settle()
    assert [service(scenario, ordinal)["metadata"]["uid"] for ordinal in range(3)] == before
    check_settled(scenario)


def test_restarted_broker_announces_its_address_again() -> None:
    scenario = exposed(NODE_PORT)
    before = announced(scenario)
    scenario.world.crash("mail-0")
    scenario.settle()
    assert announced(scenario) == before


def test_moved_pod_announces_the_address_of_its_new_node() -> None:
    scenario = exposed(NODE_PORT)
    port = announced(scenario)[0].rpartition(":")[2]
    scenario.world.cordoned.add("m0")
    scenario.world.delete_pod("mail-0")
    scenario.run(60)
    scenario.settle()
    assert scenario.world.pods["mail-0"].node != "m0"
    assert announced(scenario)[0] == addresses(scenario)[0] == f"192.0.2.1:{port}"


def test_service_of_somebody_else_is_neither_changed_nor_deleted() -> None:
    scenario = Scenario(a_spec(exposure=NODE_PORT), load=False)
    foreign = {"owner": "somebody else"}
    metadata = {"name": "mail-1-external", "labels": foreign}
    scenario.world.api.put(
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"type": "ClusterIP", "ports": []}}
    )
    scenario.run(100)
    assert condition(scenario.world.status, "Degraded") == ("True", "NameTaken")
    scenario.world.edit(exposure=None)
    scenario.settle()
    assert service(scenario, 1)["metadata"]["labels"] == foreign


def test_service_of_somebody_else_is_not_announced() -> None:
    scenario = exposed(NODE_PORT)
    live = service(scenario, 1)
    own = announced(scenario)
    live["metadata"] |= {"labels": {"owner": "somebody else"}, "ownerReferences": []}
    scenario.world.api.touch(live)
    scenario.run(100)
    assert announced(scenario) == [own[0], "", own[2]]
    assert len(addresses(scenario)) == 2
    assert condition(scenario.world.status, "Exposed") == ("False", "ServicePending")


OTHERS: Final = ("mail", "mail-members", "mail-external", "mail-00-external", "mail-a-0-external", "x-mail-0-external")


def test_only_services_with_names_of_members_are_those_of_members() -> None:
    assert names.external_ordinal("mail", "mail-0-external") == 0
    assert [names.external_ordinal("mail", name) for name in OTHERS] == [None] * len(OTHERS)


# --- what is missing --------------------------------------------------------------------------------------------------


def test_brokers_of_an_earlier_release_are_not_exposed_and_start() -> None:
    scenario = exposed(NODE_PORT, image="disque:0.1")
    container = (scenario.world.stateful_set() or {})["spec"]["template"]["spec"]["containers"][0]
    assert not any("external" in word for word in container["args"])
    assert condition(scenario.world.status, "Exposed") == ("False", "VersionTooOld")
    scenario.world.edit(image="disque:0.2")
    scenario.settle()
    check_settled(scenario)
    assert condition(scenario.world.status, "Exposed") == ("True", "AddressesKnown")


def test_operator_that_may_not_read_nodes_says_so() -> None:
    scenario = Scenario(a_spec(exposure=NODE_PORT), load=False)
    scenario.world.sees_nodes = False
    scenario.settle()
    assert condition(scenario.world.status, "Exposed") == ("False", "NodesForbidden")
    scenario.world.edit(exposure=Exposure(type="NodePort", host="nodes.example.com"))
    scenario.settle()
    assert condition(scenario.world.status, "Exposed") == ("True", "AddressesKnown")


def test_node_without_an_address_of_the_types_is_reported() -> None:
    scenario = exposed(Exposure(type="NodePort", address_types=("ExternalDNS",)))
    assert condition(scenario.world.status, "Exposed") == ("False", "NodeAddressMissing")


def test_pod_that_has_no_node_yet_does_not_change_the_condition() -> None:
    scenario = exposed(NODE_PORT)
    view = pod(view_of(scenario), 1, node="", node_addresses=(), ready=False)
    assert reported(view, "Exposed") == ("True", "AddressesKnown")
