"""TLS in the objects of a cluster: the directives and ports of the brokers, and the certificate that pods mount.

The directives are arguments of the container and not lines of the configuration file, so that they change together with
the mounted files and the ports, when a pod is replaced. A pod whose process restarts earlier continues as it was.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.busmode import SECRET_PATH, BusMode
from disque_operator.certificate_files import AUTHORITY, CERTIFICATE, KEY, Authorities, TlsFiles
from disque_operator.resources.common import Certificates, child
from disque_operator.spec import IssuerReference, Spec

TLS_PATH: Final = "/etc/disque-tls"
VOLUME: Final = "certificate"
BUS_VOLUME: Final = "bus"
_NOT_FOR_OTHERS: Final = 0o440
_CLIENT_CERTIFICATES: Final = {"Required": "yes", "Optional": "optional", "Disabled": "no"}


def serves_tls(spec: Spec) -> bool:
    """Return whether brokers have a port for clients with TLS."""
    return spec.tls.enabled and spec.tls.clients != "Disabled"


def serves_plain(spec: Spec) -> bool:
    """Return whether brokers have a port for clients without TLS."""
    return not spec.tls.enabled or spec.tls.clients != "Required"


def client_ports(spec: Spec) -> dict[str, int]:
    """Return the ports of a broker for clients, by name."""
    ports = {"client": names.CLIENT_PORT} if serves_plain(spec) else {}
    return ports | ({names.TLS_PORT_NAME: names.TLS_PORT} if serves_tls(spec) else {})


def external_ports(spec: Spec) -> dict[str, int]:
    """Return the ports of a broker for clients outside of Kubernetes, by name; none without `spec.exposure`."""
    if spec.exposure is None:
        return {}
    ports = {names.EXTERNAL_PORT_NAME: names.EXTERNAL_PORT} if serves_plain(spec) else {}
    return ports | ({names.EXTERNAL_TLS_PORT_NAME: names.EXTERNAL_TLS_PORT} if serves_tls(spec) else {})


def client_port(spec: Spec) -> int:
    """Return the port of the service for clients: the one with TLS if there is one."""
    return spec.service.tls_port if serves_tls(spec) else spec.service.port


def http_scheme(spec: Spec) -> str:
    """Return the scheme of probes and metrics."""
    return "HTTPS" if spec.tls.enabled and spec.tls.http else "HTTP"


def arguments(spec: Spec, bus: BusMode) -> list[str]:
    """Return the arguments of the broker for TLS and the bus; none without."""
    directives = _tls(spec) | bus.arguments()
    return [word for name, value in directives.items() for word in (f"--{name}", value)]


def _tls(spec: Spec) -> dict[str, str]:
    tls = spec.tls
    if not tls.enabled:
        return {}
    directives = {
        "tls-cert-file": f"{TLS_PATH}/{CERTIFICATE}",
        "tls-key-file": f"{TLS_PATH}/{KEY}",
        "tls-ca-cert-file": f"{TLS_PATH}/{AUTHORITY}",
        "http-tls": "yes" if tls.http else "no",
    }
    if serves_tls(spec):
        directives |= {
            "port": str(names.CLIENT_PORT if serves_plain(spec) else 0),
            "tls-port": str(names.TLS_PORT),
            "tls-auth-clients": _CLIENT_CERTIFICATES[tls.client_certificates],
            "cluster-port": str(names.BUS_PORT),
        }
    return directives


def secret_name(spec: Spec) -> str:
    """Return the name of the Secret with the certificate of the brokers."""
    return spec.tls.secret_name or names.tls_secret(spec.name)


def volumes(spec: Spec, bus: BusMode) -> list[Json]:
    """Return the volumes with the certificate, which brokers read again when it changes, and the cluster secrets."""
    found: list[Json] = []
    if spec.tls.enabled:
        found.append({"name": VOLUME, "secret": {"secretName": secret_name(spec)}})
    if bus.secrets:
        secret = {"secretName": names.bus_secret(spec.name), "defaultMode": _NOT_FOR_OTHERS}
        found.append({"name": BUS_VOLUME, "secret": secret})
    return found


def mounts(spec: Spec, bus: BusMode) -> list[Json]:
    """Return where the broker mounts them."""
    paths = {VOLUME: TLS_PATH, BUS_VOLUME: SECRET_PATH}
    return [
        {"name": volume["name"], "mountPath": paths[volume["name"]], "readOnly": True} for volume in volumes(spec, bus)
    ]


def dns_names(spec: Spec, external: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the certificate: of the services, of all pods, those that the spec adds, and `external`."""
    client, members = names.client_service(spec.name), names.members_service(spec.name)
    own = [client, f"{client}.{spec.namespace}"]
    for suffix in (f"{spec.namespace}.svc", f"{spec.namespace}.svc.{names.CLUSTER_DOMAIN}"):
        own += [f"{client}.{suffix}", f"{members}.{suffix}", f"*.{members}.{suffix}"]
    return tuple(dict.fromkeys((*own, *spec.tls.dns_names, *external)))


def certificate_objects(spec: Spec, certificates: Certificates) -> Iterator[Json]:
    """Yield the objects with certificates."""
    if certificates.authorities is not None:
        yield authority_secret(spec, certificates.authorities)
    if certificates.files is not None:
        yield tls_secret(spec, certificates.files)
    if spec.tls.enabled and spec.tls.issuer_ref is not None:
        yield requested_certificate(spec, spec.tls.issuer_ref, certificates.external_names)
    if certificates.trusted:
        yield trusted_certificates(spec, certificates.trusted)


def trusted_certificates(spec: Spec, pem: str) -> Json:
    """Return the ConfigMap with `ca.crt`: everyone may read it, unlike the Secret with the key."""
    return child(spec, "v1", "ConfigMap", names.ca_config_map(spec.name), {"data": {AUTHORITY: pem}})


def tls_secret(spec: Spec, files: TlsFiles) -> Json:
    """Return the Secret with the certificate."""
    return _secret(spec, names.tls_secret(spec.name), "kubernetes.io/tls", files.entries())


def authority_secret(spec: Spec, authorities: Authorities) -> Json:
    """Return the Secret with the authorities of the cluster. Pods do not mount it."""
    annotations = {names.ROTATION: str(authorities.rotation), names.ROTATED_AT: authorities.changed_at}
    return _secret(spec, names.authority_secret(spec.name), "Opaque", authorities.entries(), annotations)


def bus_secret(spec: Spec, files: Mapping[str, str]) -> Json:
    """Return the Secret with the cluster secrets."""
    return _secret(spec, names.bus_secret(spec.name), "Opaque", files)


def _secret(
    spec: Spec, name: str, kind: str, data: Mapping[str, str], annotations: Mapping[str, str] | None = None
) -> Json:
    encoded = {key: b64encode(text.encode()).decode() for key, text in data.items()}
    return child(spec, "v1", "Secret", name, {"type": kind, "data": encoded}, dict(annotations or {}))


def requested_certificate(spec: Spec, issuer: IssuerReference, external: Iterable[str]) -> Json:
    """Return the Certificate by which cert-manager makes and renews the Secret with the certificate."""
    body = {
        "secretName": names.tls_secret(spec.name),
        "secretTemplate": {"labels": names.labels(spec.name)},
        "dnsNames": list(dns_names(spec, external)),
        "usages": ["digital signature", "key encipherment", "server auth", "client auth"],
        "privateKey": {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"},
        "issuerRef": {"name": issuer.name, "kind": issuer.kind, "group": issuer.group},
    }
    return child(spec, "cert-manager.io/v1", "Certificate", names.tls_secret(spec.name), {"spec": body})
