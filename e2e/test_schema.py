"""The resource definition on a real API server: accepted and rejected specs, error messages, and defaults.

No operator and no pods run. The definition is installed under another name, and most requests are dry runs. The objects
that the operator creates must equal what the API server stores, or the operator would write them repeatedly.
"""

from __future__ import annotations

import copy
import json
import random
import secrets
from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml
from kubernetes.client.exceptions import ApiException

from disque_operator import names, resources
from disque_operator.directives import FREE, read
from disque_operator.problems import problems
from disque_operator.resources import Wanted
from disque_operator.spec import Spec, parse
from disqued.config.kinds import BadValueError
from disqued.config.option import Option
from e2e.support.brokers import poll
from e2e.support.kube import PATHS, Json, Kube
from e2e.support.settings import ROOT
from support.manifests import EVERYTHING, SAMPLES, bodies, children, sample

CRD: Final = ROOT / "manifests" / "crd" / "disqueclusters.yaml"
ESTABLISHED_S: Final = 30
INVALID: Final = 422
NOT_YET: Final = (404, 429)

TEXTS: Final = ("", "0", "1", "-1", "7", "501", "70000", "1.5", "x", "yes", "NO", "true", "64mb", "1 gb", "2GB", "1Mi")
"""Values that the test tries for every directive; some are valid, some are not."""
WORDS: Final = ("notice", "Warning", "loud", "acks", "noeviction", "normal 1mb 2mb 60", "normal 1mb")


class Resource:
    """The resource definition, installed under a unique name."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self.kube = kube
        self.namespace = namespace
        self.group = f"schema-{secrets.token_hex(3)}.disque.dev"
        self.kind = f"DisqueCluster{self.group[7:13]}"
        self._definition = self._renamed()

    def _renamed(self) -> Json:
        text = CRD.read_text().replace("DisqueCluster", self.kind)
        definition: Json = yaml.safe_load(text)
        definition["metadata"]["name"] = f"{names.PLURAL}.{self.group}"
        definition["spec"]["group"] = self.group
        kinds = definition["spec"]["names"]
        kinds |= {"kind": self.kind, "listKind": f"{self.kind}List", "singular": self.kind.lower()}
        del kinds["shortNames"], kinds["categories"]
        return definition

    def install(self) -> None:
        """Install the definition, and wait until the API server serves it."""
        self.kube.create(self._definition)
        self.kube.wait(
            "CustomResourceDefinition", "", _established, "it is served", within_s=ESTABLISHED_S, name=self.name
        )
        PATHS[self.kind] = (f"apis/{self.group}/{names.VERSION}", names.PLURAL)
        poll(self._is_served, f"{self.kind} is served", ESTABLISHED_S)

    def _is_served(self) -> bool:
        """Return whether the API server serves the kind, which it does shortly after the definition is established."""
        try:
            self.kube.all(self.kind, self.namespace)
        except ApiException as error:
            if error.status in NOT_YET:
                return False
            raise
        return True

    @property
    def name(self) -> str:
        """Name of the definition."""
        return str(self._definition["metadata"]["name"])

    def uninstall(self) -> None:
        """Delete the definition."""
        self.kube.delete("CustomResourceDefinition", self.name)

    def body(self, spec: Json, name: str = "jobs") -> Json:
        """Return a resource with this spec."""
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": f"{self.group}/{names.VERSION}", "kind": self.kind, "metadata": metadata, "spec": spec}

    def rejection(self, spec: Json, name: str = "jobs") -> str:
        """Return the API server's error for a spec; empty if it accepts the spec."""
        return rejection(self.kube, self.body(spec, name))

    def defaulted(self, spec: Json) -> Spec:
        """Return a spec as the operator reads it from the API server, with defaults."""
        return parse(self.kube.dry_run(self.body(spec), method="POST"))


def _established(definitions: list[Json]) -> bool:
    conditions = [one for item in definitions for one in item.get("status", {}).get("conditions") or ()]
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def rejection(kube: Kube, manifest: Json) -> str:
    """Return the API server's error for a new object; empty if it accepts the object."""
    try:
        kube.dry_run(manifest, method="POST")
    except ApiException as error:
        if error.status != INVALID:
            raise
        return str(error.reason)
    return ""


@pytest.fixture(scope="module")
def shared_namespace(kube: Kube) -> Iterator[str]:
    """A namespace of this module, for restricted pods only."""
    name = f"schema-{secrets.token_hex(3)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    yield name
    kube.delete("Namespace", name)


@pytest.fixture(scope="module")
def resource(kube: Kube, shared_namespace: str) -> Iterator[Resource]:
    installed = Resource(kube, shared_namespace)
    try:
        installed.install()
        yield installed
    finally:
        installed.uninstall()


def test_object_is_read_and_written_in_both_versions(
    resource: Resource, kube: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    kube.create(resource.body({"replicas": 2}, "both"))
    try:
        api, plural = PATHS[resource.kind]
        monkeypatch.setitem(PATHS, resource.kind, (api.replace("v1alpha1", "v1beta1"), plural))
        found = kube.get(resource.kind, "both", resource.namespace)
        assert (found["apiVersion"], found["spec"]["replicas"]) == (f"{resource.group}/v1beta1", 2)
        kube.patch(resource.kind, "both", resource.namespace, {"spec": {"replicas": 5}})
        monkeypatch.setitem(PATHS, resource.kind, (api, plural))
        assert kube.get(resource.kind, "both", resource.namespace)["spec"]["replicas"] == 5
    finally:
        kube.delete(resource.kind, "both", resource.namespace)


# --- validation -------------------------------------------------------------------------------------------------------

GOOD: Final[tuple[Json, ...]] = (
    {},
    EVERYTHING,
    {"replicas": 1},
    {"replicas": 3, "podDisruptionBudget": {"maxUnavailable": 2}},
    {"replicas": 1, "podDisruptionBudget": {"maxUnavailable": 2}},
    {"replicas": 2, "podDisruptionBudget": {"enabled": False, "maxUnavailable": 2}},
    {"replicas": 100, "minReplicas": 100},
    {"hibernate": True},
    {"paused": True},
    {"storage": {"ephemeral": True}, "persistence": {"appendonly": False}},
    {"storage": {"size": "1.5Ti"}},
    {"maxmemory": "75%"},
    {"maxmemory": "100%"},
    {"maxmemory": "512MB"},
    {"maxmemory": "1073741824"},
    {"auth": {"enabled": False}},
    {"auth": {"secretName": "mine"}},
    {"tls": {"enabled": True, "clients": "Optional", "clientCertificates": "Required", "rotation": 2}},
    {"tls": {"enabled": True, "secretName": "mine", "http": True}},
    {"tls": {"enabled": True, "issuerRef": {"name": "company"}, "dnsNames": ["jobs.example.org"]}},
    {"tls": {"enabled": True, "clients": "Disabled"}},
    {"config": {"tls-min-version": "1.3"}},
    {"clusterSecret": {"enabled": True, "rotation": 1}},
    {"backup": {"store": {"url": "s3://backups/shop", "secretName": "s3"}}},
    {"backup": {"store": {"url": "gs://backups"}, "schedule": "@daily", "timeZone": "Europe/Berlin", "days": 7}},
    {"backup": {"store": {"claimName": "backups"}, "schedule": "*/15 0-6 * * MON-FRI", "suspend": True}},
    {"backup": {"store": {"claimName": "backups", "url": "file:///backups/shop"}}},
    {"bootstrap": {"fromBackup": {"store": {"url": "s3://backups"}}}},
    {"ordered": {"enabled": True}},
    {"replicas": 1, "ordered": {"enabled": True, "replicas": 1}},
    {"replicas": 1, "ordered": {"replicas": 5}},
    {
        "bootstrap": {
            "fromBackup": {"store": {"claimName": "b"}, "name": "shop.a-20260714T020000Z", "atMostOnce": "Queue"}
        }
    },
    {"config": {"slowlog-log-slower-than": "-1", "loglevel": "Debug", "tcp-keepalive": "yes"}},
    {"config": {"metrics-queues": "All", "http-actions": "yes"}},
    {"resources": {"limits": {"cpu": 2, "memory": "1Gi"}}},
    {"podTemplate": {"spec": {"containers": [{"name": "side", "image": "x", "command": ["a"], "ports": []}]}}},
    {"podTemplate": {"spec": {"dnsPolicy": "Default", "terminationGracePeriodSeconds": 600}}},
    {"upgrade": {"window": {"start": "22:00", "end": "04:00"}}},
    {"upgrade": {"window": {"days": ["Sunday"], "start": "00:00", "end": "23:59", "timeZone": "Europe/Berlin"}}},
    {"networkPolicy": {"clients": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}},
    {"monitoring": {"podMonitor": {"enabled": True, "interval": "1m30s", "queues": ["mail:*"]}}},
    {"networkPolicy": {"monitoring": [{"namespaceSelector": {}}], "egress": {"enabled": True}}},
    {"networkPolicy": {"egress": {"enabled": True, "rules": [{"ports": [{"port": "https"}, {"port": 443}]}]}}},
    {"exposure": {"type": "LoadBalancer", "loadBalancerSourceRanges": ["203.0.113.0/24", "2001:db8::/32"]}},
    {"exposure": {"type": "NodePort", "nodePort": 31000, "tlsNodePort": 31100, "host": "nodes.example.com"}},
    {"exposure": {"type": "ClusterIP", "host": "jobs-{ordinal}.example.com", "tlsPort": 443}},
    {"exposure": {"type": "ClusterIP", "host": "{pod}.jobs.example.com"}, "networkPolicy": {"external": [{}]}},
    {"service": {"type": "LoadBalancer", "ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv6", "IPv4"]}},
)
BROKER: Final[Json] = {"name": "broker"}
NODE_PORT: Final[Json] = {"type": "NodePort"}
ON_PORT: Final[Json] = NODE_PORT | {"nodePort": 31000}
FROM_BACKUP: Final[Json] = {"fromBackup": {"store": {"url": "s3://backups"}}}
BALANCED: Final[Json] = {"type": "LoadBalancer"}
OF_A_CLASS: Final[Json] = BALANCED | {"loadBalancerClass": "x"}
BAD: Final[tuple[tuple[Json, str], ...]] = (
    ({"replicas": 0}, "replicas must be at least 1: to stop all members and keep their jobs, set hibernate: true"),
    ({"replicas": 101}, "should be less than or equal to 100"),
    ({"replicas": 2, "minReplicas": 3}, "replicas must not be less than minReplicas: lower minReplicas too"),
    ({"minReplicas": 0}, "should be greater than or equal to 1"),
    ({"storage": {"size": "10GB"}}, "storage.size must be a quantity such as 10Gi"),
    ({"storage": {"size": "0"}}, "storage.size must be a quantity such as 10Gi"),
    ({"storage": {"size": "-1Gi"}}, "storage.size must be a quantity such as 10Gi"),
    ({"storage": {"retention": {"whenScaled": "Keep"}}}, 'supported values: "Retain", "Delete"'),
    ({"storage": {"ephemeral": True}}, "set persistence.appendonly: false too"),
    (
        {"storage": {"ephemeral": True}, "persistence": {"appendonly": False}, "hibernate": True},
        "hibernate needs a cluster with volumes",
    ),
    ({"persistence": {"fsync": "sometimes"}}, 'supported values: "always", "everysec", "no"'),
    ({"maxmemory": "512Mi"}, "maxmemory must be auto, a share of the memory limit such as 75%, or a size"),
    ({"maxmemory": "0"}, "maxmemory must be auto"),
    ({"maxmemory": "101%"}, "maxmemory must be auto"),
    ({"maxmemory": "half"}, "maxmemory must be auto"),
    ({"auth": {"enabled": False, "secretName": "mine"}}, "remove one of them"),
    ({"auth": {"secretName": "mine", "rotation": 1}}, "change the password in the Secret auth.secretName instead"),
    ({"auth": {"secretName": "jobs-auth"}}, "use a Secret with another name"),
    ({"auth": {"secretName": "jobs-default-user"}}, "use a Secret with another name"),
    (
        {"tls": {"enabled": True, "secretName": "mine", "issuerRef": {"name": "company"}}},
        "tls.secretName is a certificate of yours, tls.issuerRef makes one: remove one of them",
    ),
    ({"tls": {"secretName": "mine"}}, "have no effect with tls.enabled: false: set it to true"),
    ({"tls": {"enabled": True, "clients": "Disabled", "bus": False}}, "tls.enabled has no effect if"),
    (
        {"tls": {"enabled": True, "clients": "Disabled", "clientCertificates": "Optional"}},
        "tls.clientCertificates needs tls.clients: Required or Optional",
    ),
    ({"tls": {"enabled": True, "secretName": "mine", "dnsNames": ["a"]}}, "not for one of yours in tls.secretName"),
    ({"tls": {"enabled": True, "secretName": "mine", "rotation": 1}}, "tls.rotation is for generated authorities"),
    ({"tls": {"enabled": True, "clients": "Off"}}, 'supported values: "Required", "Optional", "Disabled"'),
    ({"tls": {"enabled": True, "graceSeconds": 60}}, "should be greater than or equal to 180"),
    ({"backup": {"schedule": "@daily"}}, "spec.backup.store"),
    ({"backup": {"store": {}}}, "store.url or store.claimName is missing"),
    ({"backup": {"store": {"url": "/backups"}}}, "store.url must be the URL of an object store"),
    ({"backup": {"store": {"url": "file:///backups"}}}, "for a directory set store.claimName"),
    ({"backup": {"store": {"url": "s3://b", "claimName": "c"}}}, "store.url must be file:///backups or below it"),
    ({"backup": {"store": {"url": "s3://b"}, "days": 3}}, "have no effect without backup.schedule"),
    ({"backup": {"store": {"url": "s3://b"}, "schedule": "at two"}}, "spec.backup.schedule"),
    ({"backup": {"store": {"url": "s3://b"}, "schedule": "TZ=UTC 0 2 * *"}}, "spec.backup.schedule"),
    ({"bootstrap": {"fromBackup": {"store": {"url": "s3://b"}, "name": "../x"}}}, "spec.bootstrap.fromBackup.name"),
    (
        {
            "bootstrap": {"fromBackup": {"store": {"url": "s3://b"}}},
            "storage": {"ephemeral": True},
            "persistence": {"appendonly": False},
        },
        "it needs storage.ephemeral: false",
    ),
    (
        {"storage": {"ephemeral": True}, "persistence": {"appendonly": False}, "ordered": {"enabled": True}},
        "ordered.enabled needs storage.ephemeral: false",
    ),
    ({"ordered": {"enabled": True, "replicas": 2}}, "ordered.replicas must be 1, 3 or 5"),
    ({"ordered": {"enabled": True, "replicas": 7}}, "should be less than or equal to 5"),
    ({"replicas": 2, "ordered": {"enabled": True}}, "ordered.replicas must not exceed replicas"),
    ({"clusterSecret": {"rotation": -1}}, "should be greater than or equal to 0"),
    ({"config": {"cluster-secret-file": "/x"}}, "cluster-secret-file cannot be set: set spec.clusterSecret"),
    ({"config": {"tls-port": "7712"}}, "tls-port cannot be set: set spec.tls"),
    ({"config": {"http-api": "full"}}, "http-api cannot be set: set spec.httpApi"),
    ({"httpApi": "yes"}, 'supported values: "read", "full"'),
    ({"httpApi": "full", "service": {"port": 9711}}, "service.port and service.tlsPort must not be 9711"),
    ({"service": {"type": "ExternalName"}}, 'supported values: "ClusterIP", "NodePort", "LoadBalancer"'),
    ({"service": {"port": 0}}, "should be greater than or equal to 1"),
    ({"service": {"loadBalancerClass": "x"}}, "need service.type: LoadBalancer"),
    ({"service": {"externalTrafficPolicy": "Local"}}, "needs service.type: LoadBalancer or NodePort"),
    ({"service": {"ipFamilies": ["IPv4", "IPv6"]}}, "two different service.ipFamilies need service.ipFamilyPolicy"),
    ({"exposure": {}}, "spec.exposure.type: Required value"),
    ({"exposure": {"type": "ClusterIP"}}, "exposure.type: ClusterIP needs exposure.host"),
    ({"exposure": NODE_PORT | {"loadBalancerSourceRanges": ["10.0.0.0/8"]}}, "need exposure.type: LoadBalancer"),
    ({"exposure": {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.1"]}}, "should match"),
    ({"exposure": {"type": "LoadBalancer", "host": "jobs.example.com"}}, "exposure.host must contain {pod}"),
    ({"exposure": {"type": "LoadBalancer", "host": "{name}.example.com"}}, "should match"),
    ({"exposure": {"type": "LoadBalancer", "nodePort": 31000}}, "need exposure.type: NodePort"),
    ({"exposure": NODE_PORT | {"nodePort": 31000, "tlsNodePort": 31003}}, "must be at least 100 apart"),
    ({"exposure": NODE_PORT | {"addressTypes": []}}, "should have at least 1 items"),
    ({"exposure": NODE_PORT | {"port": 443, "tlsPort": 443}}, "must be different"),
    ({"config": {"external-port": "7713"}}, "external-port cannot be set: set spec.exposure"),
    ({"drain": {"onTimeout": "Drop"}}, 'supported values: "Wait", "Retain", "Force"'),
    ({"drain": {"timeoutSeconds": 0}}, "should be greater than or equal to 1"),
    ({"upgrade": {"window": {"start": "22:00"}}}, "spec.upgrade.window.end: Required value"),
    ({"upgrade": {"window": {"start": "24:00", "end": "04:00"}}}, "should match"),
    ({"upgrade": {"window": {"start": "1:00", "end": "04:00"}}}, "should match"),
    ({"upgrade": {"window": {"days": [], "start": "01:00", "end": "04:00"}}}, "should have at least 1 items"),
    ({"upgrade": {"window": {"days": ["Sun"], "start": "01:00", "end": "04:00"}}}, 'supported values: "Monday"'),
    ({"podDisruptionBudget": {"maxUnavailable": 0}}, "should be greater than or equal to 1"),
    ({"monitoring": {"podMonitor": {"interval": "30"}}}, "monitoring.podMonitor.interval"),
    ({"networkPolicy": {"egress": {"rules": [{}]}}}, "networkPolicy.egress.rules has no effect"),
    (
        {"replicas": 2, "podDisruptionBudget": {"maxUnavailable": 2}},
        "podDisruptionBudget.maxUnavailable must be less than replicas",
    ),
    ({"image": ""}, "should be at least 1 chars long"),
    ({"config": {"hz": "10", "colour": "red"}}, "colour is not a directive of the broker"),
    (
        {"config": {"port": "7712"}},
        "port cannot be set: ports of the pods are fixed; set the port for clients in spec.service.port",
    ),
    ({"config": {"maxmemory": "1gb"}}, "maxmemory cannot be set: set spec.maxmemory"),
    ({"config": {"requirepass": "x"}}, "passwords are generated"),
    ({"config": {"appendonly": "yes"}}, "set spec.persistence.appendonly to true or false"),
    ({"config": {"include": "/x"}}, "set the directives themselves in spec.config"),
    ({"config": {"hz": "fast"}}, 'hz must be a whole number, 0 or greater, in quotation marks: "100"'),
    ({"config": {"metrics-queues": "most"}}, "metrics-queues must be all, or a whole number, 0 or greater"),
    ({"config": {"maxclients": "0"}}, "maxclients must be a whole number, 1 or greater"),
    ({"config": {"loglevel": "loud"}}, "loglevel must be one of debug, verbose, notice, warning"),
    ({"config": {"aof-checksums": "true"}}, 'aof-checksums must be yes or no, in quotation marks: "yes"'),
    ({"config": {"auto-aof-rewrite-min-size": "64Mi"}}, "auto-aof-rewrite-min-size must be a memory size"),
    ({"config": {"hz": 10}}, "must be of type string"),
    ({"resources": {"limits": {"memory": "much"}}}, "spec.resources.limits.memory"),
    ({"tolerations": [{"tolerationSeconds": "x"}]}, "must be of type integer"),
    ({"topologySpreadConstraints": [{"maxSkew": 1}]}, "topologyKey: Required value"),
    ({"podTemplate": {"spec": {"containers": [{"image": "x"}]}}}, "name: Required value"),
    ({"podTemplate": {"spec": {"containers": [BROKER | {"image": "x"}]}}}, "set spec.image"),
    ({"podTemplate": {"spec": {"containers": [BROKER | {"resources": {}}]}}}, "set spec.resources"),
    ({"podTemplate": {"spec": {"containers": [BROKER | {"args": ["--hz"]}]}}}, "set directives in spec.config"),
    ({"podTemplate": {"spec": {"hostname": "x"}}}, "hostname cannot be set: a member is identified by the host name"),
    ({"podTemplate": {"spec": {"volumes": [{"name": "data"}]}}}, "the volume data cannot be set"),
    ({"podTemplate": {"metadata": {"labels": {"disque.dev/cluster": "x"}}}}, "labels of the operator cannot be set"),
)
NAMES: Final = (
    ("a", ""),
    ("a" * 52, ""),
    ("jobs-2", ""),
    ("a" * 53, "metadata.name must have at most 52 characters"),
    ("2-jobs", "metadata.name must be lower case letters, digits and hyphens"),
    ("my.jobs", "metadata.name must be lower case letters, digits and hyphens"),
)
CHANGES: Final[tuple[tuple[Json, Json, str], ...]] = (
    ({}, {"replicas": 5, "image": "other", "hibernate": True}, ""),
    ({}, {"storage": {"size": "3Gi"}}, ""),
    ({"storage": {"size": "2Gi"}}, {"storage": {"size": "2048Mi"}}, ""),
    (
        {},
        {"storage": {"ephemeral": True}, "persistence": {"appendonly": False}},
        "storage.ephemeral cannot be changed: create another cluster",
    ),
    ({}, {"storage": {"className": "fast"}}, "storage.className cannot be changed"),
    ({"storage": {"className": "fast"}}, {}, "storage.className cannot be changed"),
    ({"storage": {"className": "fast"}}, {"storage": {"className": "slow"}}, "storage.className cannot be changed"),
    ({"storage": {"className": "fast"}}, {"storage": {"className": "fast"}, "paused": True}, ""),
    (
        {"exposure": BALANCED},
        {"exposure": BALANCED | {"loadBalancerClass": "x"}},
        "loadBalancerClass cannot be changed",
    ),
    ({"exposure": NODE_PORT}, {"exposure": BALANCED | {"loadBalancerClass": "x"}}, ""),
    ({"exposure": BALANCED | {"loadBalancerClass": "x"}}, {}, ""),
    ({}, {"bootstrap": FROM_BACKUP}, "bootstrap cannot be changed"),
    ({"bootstrap": FROM_BACKUP}, {}, "bootstrap cannot be changed"),
    ({"bootstrap": FROM_BACKUP}, {"bootstrap": FROM_BACKUP, "replicas": 5}, ""),
)


@pytest.mark.parametrize("spec", GOOD, ids=lambda spec: json.dumps(spec)[:60])
def test_valid_spec_is_accepted_and_has_no_problems(resource: Resource, spec: Json) -> None:
    assert resource.rejection(spec) == ""
    assert problems(resource.defaulted(spec)) == ()


@pytest.mark.parametrize(("spec", "message"), BAD, ids=lambda part: json.dumps(part)[:60])
def test_invalid_spec_is_rejected_with_a_remedy(resource: Resource, spec: Json, message: str) -> None:
    assert message in resource.rejection(spec)


@pytest.mark.parametrize(("name", "message"), NAMES)
def test_name_is_rejected_if_derived_names_would_be_invalid(resource: Resource, name: str, message: str) -> None:
    error = resource.rejection({}, name)
    assert message in error
    assert bool(message) == bool(error)


def test_name_is_rejected_if_the_name_of_the_cron_job_would_be_invalid(
    resource: Resource, kube: Kube, shared_namespace: str
) -> None:
    spec = {"image": "disqued:1", "backup": {"store": {"url": "s3://backups"}, "schedule": "@daily"}}
    assert "at most 45 characters with backup.schedule" in resource.rejection(spec, "a" * 46)
    assert resource.rejection(spec, "a" * 45) == ""
    for manifest in _children_in({"metadata": {"name": "a" * 45}, "spec": spec}, shared_namespace):
        assert rejection(kube, manifest) == ""


@pytest.mark.parametrize(("before", "after", "message"), CHANGES, ids=lambda part: json.dumps(part)[:50])
def test_change_of_an_immutable_field_is_rejected(resource: Resource, before: Json, after: Json, message: str) -> None:
    name = f"changed-{secrets.token_hex(3)}"
    created = resource.kube.create(resource.body(before, name))
    try:
        resource.kube.dry_run(created | {"spec": after}, method="PUT")
        found = ""
    except ApiException as error:
        found = str(error.reason)
    assert message in found
    assert bool(message) == bool(found)


@pytest.mark.parametrize("option", FREE, ids=lambda option: option.name)
def test_api_server_accepts_directive_values_that_the_broker_accepts(resource: Resource, option: Option[Any]) -> None:
    """The condition SpecValid reports values that the API server accepts and the broker does not."""
    for text in (*TEXTS, *WORDS):
        rejected = resource.rejection({"config": {option.name: text}})
        if _is_readable(option, text):
            assert rejected == "", text
        elif not rejected:
            assert problems(resource.defaulted({"config": {option.name: text}})) != (), text


def _is_readable(option: Option[Any], text: str) -> bool:
    try:
        read(option.kind, text)
    except BadValueError:
        return False
    return True


def test_unknown_field_is_rejected(resource: Resource) -> None:
    with pytest.raises(ApiException, match="replica"):
        resource.kube.dry_run(resource.body({"replica": 3}), method="POST")


@pytest.mark.parametrize("name", sorted(path.stem for path in SAMPLES.glob("*.yaml")))
def test_samples_are_accepted(resource: Resource, name: str) -> None:
    for manifest in sample(name):
        manifest["metadata"]["namespace"] = resource.namespace
        if manifest["kind"] == names.KIND:
            manifest |= {"apiVersion": f"{resource.group}/{names.VERSION}", "kind": resource.kind}
            assert problems(parse(resource.kube.dry_run(manifest))) == ()
        assert rejection(resource.kube, manifest) == ""


# --- defaults and subresources ----------------------------------------------------------------------------------------


def test_defaults_are_those_of_the_operator(resource: Resource) -> None:
    spec = resource.defaulted({})
    assert spec == Spec(name="jobs", namespace=resource.namespace, uid=spec.uid, generation=1)


def test_null_in_the_pod_template_is_kept(resource: Resource) -> None:
    spec = resource.defaulted({"podTemplate": {"spec": {"securityContext": {"runAsUser": None}}}})
    (manifest,) = [one for one in resources.desired(spec, Wanted(1)) if one["kind"] == "StatefulSet"]
    assert "runAsUser" not in manifest["spec"]["template"]["spec"]["securityContext"]


def test_scale_subresource_changes_replicas(resource: Resource) -> None:
    name = f"scaled-{secrets.token_hex(3)}"
    resource.kube.create(resource.body({"replicas": 3, "minReplicas": 2}, name))
    resource.kube.patch(
        resource.kind, name, resource.namespace, {"status": {"replicas": 3, "selector": "a=b"}}, "status"
    )
    scaled = resource.kube.patch(resource.kind, name, resource.namespace, {"spec": {"replicas": 5}}, "scale")
    assert (scaled["spec"], scaled["status"]) == ({"replicas": 5}, {"replicas": 3, "selector": "a=b"})
    with pytest.raises(ApiException, match="lower minReplicas too"):
        resource.kube.patch(resource.kind, name, resource.namespace, {"spec": {"replicas": 1}}, "scale")
    assert resource.kube.get(resource.kind, name, resource.namespace)["spec"]["replicas"] == 5


def test_all_fields_of_the_status_are_stored(resource: Resource) -> None:
    name = f"status-{secrets.token_hex(3)}"
    resource.kube.create(resource.body({}, name))
    version = yaml.safe_load(CRD.read_text())["spec"]["versions"][0]
    status = _example(version["schema"]["openAPIV3Schema"]["properties"]["status"])
    kept = resource.kube.patch(resource.kind, name, resource.namespace, {"status": status}, "status")
    assert kept["status"] == status


def _example(schema: Json) -> Any:
    """Return a value that has every field of a schema."""
    if "properties" in schema:
        return {name: _example(below) for name, below in schema["properties"].items()}
    if "items" in schema:
        return [_example(schema["items"])]
    known = {"integer": 7, "number": 1.5, "boolean": True, "string": "text"}
    if schema.get("format") == "date-time":
        return "2026-01-31T12:00:00Z"
    return schema["enum"][0] if "enum" in schema else known[schema["type"]]


# --- objects of the operator ------------------------------------------------------------------------------------------


def random_subset(everything: Json, seed: int) -> Json:
    """Return a spec with a random subset of the fields, the same for the same seed.

    Ordered queues with five replicas need five members, so `ordered` comes with `replicas`.
    """
    generator = random.Random(seed)
    chosen = {field for field in everything if generator.random() < 0.5}
    if "ordered" in chosen:
        chosen.add("replicas")
    return {field: copy.deepcopy(value) for field, value in everything.items() if field in chosen}


@pytest.mark.parametrize("name", bodies())
def test_objects_equal_what_the_api_server_stores(kube: Kube, shared_namespace: str, name: str) -> None:
    for manifest in _children_in(bodies()[name], shared_namespace):
        assert resources.differs(manifest, kube.dry_run(manifest)) == ""


@pytest.mark.parametrize("seed", range(12))
def test_objects_of_a_random_spec_equal_what_the_api_server_stores(
    kube: Kube, shared_namespace: str, resource: Resource, seed: int
) -> None:
    spec = random_subset(EVERYTHING, seed)
    assert resource.rejection(spec) == ""
    body = kube.dry_run(resource.body(spec))
    body["spec"].setdefault("image", "disqued:1")
    for manifest in _children_in(body, shared_namespace):
        assert resources.differs(manifest, kube.dry_run(manifest)) == ""


def _children_in(body: Json, namespace: str) -> list[Json]:
    """Return the objects of a cluster, without those whose kinds other projects define."""
    moved = copy.deepcopy(body)
    moved["metadata"] |= {"namespace": namespace, "uid": "0b5f1c80-0000-4000-8000-000000000001"}
    return [manifest for manifest in children(moved) if manifest["kind"] not in {"Certificate", "PodMonitor"}]


@pytest.mark.parametrize("name", ["minimal", "production", "ephemeral"])
def test_pods_satisfy_the_restricted_pod_security_standard(kube: Kube, shared_namespace: str, name: str) -> None:
    objects = _children_in(bodies()[name], shared_namespace)
    found = next(one for one in objects if one["kind"] == "StatefulSet")["spec"]["template"]
    metadata = found["metadata"] | {"name": "checked", "namespace": shared_namespace}
    volumes = [*(one for one in found["spec"]["volumes"] if one["name"] != names.DATA), {"name": names.DATA}]
    spec = found["spec"] | {"serviceAccountName": "default", "volumes": volumes}
    kube.dry_run({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, method="POST")


def test_unchanged_objects_are_not_written_and_manual_changes_are_detected(kube: Kube, resource: Resource) -> None:
    """Uses a real owner and a StatefulSet without pods."""
    owner = kube.create(resource.body({"nodeSelector": {"a": "b"}}, "idle"))
    body = copy.deepcopy(owner) | {"apiVersion": f"{resource.group}/{names.VERSION}"}
    before = {one["kind"] + one["metadata"]["name"]: one for one in _owned(body, resource)}
    applied = {key: kube.apply(manifest) for key, manifest in before.items()}
    for key, manifest in before.items():
        live = kube.get(manifest["kind"], manifest["metadata"]["name"], resource.namespace)
        assert resources.differs(manifest, live) == ""
        assert _without_system_fields(kube.apply(manifest)) == _without_system_fields(applied[key])
    del body["spec"]["nodeSelector"]
    (after,) = [one for one in _owned(body, resource) if one["kind"] == "StatefulSet"]
    live = kube.get("StatefulSet", "idle", resource.namespace)
    assert resources.differs(after, live) == f"metadata.annotations.{names.SPEC_DIGEST}"
    assert "nodeSelector" not in kube.apply(after)["spec"]["template"]["spec"]
    kube.patch("Service", "idle-members", resource.namespace, {"spec": {"publishNotReadyAddresses": False}})
    live = kube.get("Service", "idle-members", resource.namespace)
    assert resources.differs(before["Serviceidle-members"], live) == "spec.publishNotReadyAddresses"
    kube.apply(before["Serviceidle-members"])
    live = kube.get("Service", "idle-members", resource.namespace)
    assert resources.differs(before["Serviceidle-members"], live) == ""


def _without_system_fields(live: Json) -> Json:
    """Return an object without the fields that the API server and controllers write."""
    metadata = {
        name: value for name, value in live["metadata"].items() if name not in {"resourceVersion", "managedFields"}
    }
    return {name: value for name, value in live.items() if name != "status"} | {"metadata": metadata}


def _owned(body: Json, resource: Resource) -> list[Json]:
    """Return the objects of a resource of the renamed definition, for a cluster with no pods."""
    manifests = resources.desired(parse(body), Wanted(0, image="disqued:1"))
    for manifest in manifests:
        for owner in manifest["metadata"]["ownerReferences"]:
            owner |= {"apiVersion": f"{resource.group}/{names.VERSION}", "kind": resource.kind}
    return list(manifests)
