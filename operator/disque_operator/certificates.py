"""Certificates: that of the brokers, and the authorities that sign it if the cluster has its own.

| the certificate | is renewed by |
|---|---|
| `tls.secretName` | you |
| `tls.issuerRef` | cert-manager, which fulfils the Certificate that the operator applies |
| neither | the operator, with an authority of the cluster |

The operator's own certificate is issued again when it expires soon, lacks an address of a member, or differs in its
names, its authority or the authorities that are trusted. Its authority is replaced in steps, each stored before the
next one:

| observed | decision |
|---|---|
| no authority | make one |
| no authority, but a certificate that one signed | make the next one; the certificate continues until it signs |
| the authority expires within a year, or `tls.rotation` changed | make the next one, which is trusted from now on |
| the next one has been trusted for `tls.graceSeconds` | it signs; the previous one remains trusted |
| that was `tls.graceSeconds` ago, and it has signed the certificate | the previous one is no longer trusted |

The kubelet updates the files in running pods, and brokers read them again: no step restarts a pod. Keys are made by
`executor`: this module only requests them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from disque_operator import names, pki
from disque_operator.addresses import Hosts, verified_hosts
from disque_operator.apivalues import condition_of, timestamp
from disque_operator.certificate_files import AUTHORITY, CERTIFICATE, KEY, Authorities, CertificateRequest, TlsFiles
from disque_operator.decisions import NOTHING, Decision, Note, problem, progress
from disque_operator.members import ClusterView
from disque_operator.pki import Pem
from disque_operator.resources.common import Certificates
from disque_operator.resources.encryption import dns_names, secret_name

DAY_S: Final = 86400.0
CERTIFICATE_S: Final = 90 * DAY_S
RENEWED_S: Final = 30 * DAY_S
"""How long before its end a certificate is issued again."""
AUTHORITY_S: Final = 5 * 365 * DAY_S
REPLACED_S: Final = 365 * DAY_S
"""How long before its end an authority is replaced."""
WARNED_S: Final = 7 * DAY_S
"""How long before its end a certificate that others renew is reported."""
BACKDATED_S: Final = 300.0
"""How far clocks may differ."""
_PENDING: Final = Pem("-", "-")
"""Stands for entries that the executor fills in."""


@dataclass(frozen=True)
class CertificateDecision:
    """The desired objects, and what to report."""

    wanted: Certificates
    decision: Decision = NOTHING
    possible: bool = True
    """False if there is no certificate with which a broker could start, so that no pod must be created or replaced."""


def decide(view: ClusterView) -> CertificateDecision:
    """Decide the next step for certificates."""
    tls = view.spec.tls
    if not tls.enabled:
        return CertificateDecision(Certificates(_still_trusted(view)))
    if tls.secret_name is None and tls.issuer_ref is None:
        return _own(view)
    return _others(view)


def _still_trusted(view: ClusterView) -> str:
    """Return the published authorities, by which the operator verifies pods that have TLS until they are replaced."""
    if not any(member.pod.tls for member in view.members):
        return ""
    live = view.observed.children.get(("ConfigMap", names.ca_config_map(view.spec.name)), {})
    return str((live.get("data") or {}).get(AUTHORITY, ""))


def _others(view: ClusterView) -> CertificateDecision:
    """Decide for a certificate that is renewed by others."""
    files = view.observed.tls
    asked = Certificates(external_names=verified_hosts(view).names)
    if files is None:
        return CertificateDecision(asked, Decision(notes=(_missing(view),)), possible=False)
    wrong = files.wrong or _misfit(view, files)
    if wrong:
        text = f"the certificate in the Secret {secret_name(view.spec)} cannot be used: {wrong}"
        return CertificateDecision(asked, Decision(notes=(problem("CertificateInvalid", text),)), possible=False)
    return CertificateDecision(replace(asked, trusted=files.trusted), Decision(notes=_expiring(view, files)))


def _missing(view: ClusterView) -> Note:
    spec, name = view.spec, secret_name(view.spec)
    if spec.tls.secret_name is not None:
        text = f"the Secret {name} of spec.tls.secretName does not exist: create it with tls.crt, tls.key and ca.crt"
        return problem("CertificateMissing", text)
    if not view.observed.serves_certificates:
        text = "spec.tls.issuerRef needs cert-manager, which is not installed: install it, or remove issuerRef"
        return problem("CertManagerMissing", text)
    live = view.observed.children.get(("Certificate", names.tls_secret(spec.name)), {})
    said = condition_of(live.get("status") or {}, "Ready").get("message", "")
    return progress("CertificatePending", f"waiting for cert-manager to create the Secret {name}: {said}", "Healing")


def _misfit(view: ClusterView, files: TlsFiles) -> str:
    """Return why a certificate that can be read does not fit the cluster; empty if it does."""
    spec, facts = view.spec, files.facts
    if facts is None:
        return "it cannot be read"
    if facts.ends_s <= view.now_s:
        return f"it expired at {timestamp(facts.ends_s)}"
    members = f"{names.members_service(spec.name)}.{spec.namespace}.svc"
    needed = [names.pod_host(spec.name, spec.namespace, 0), *([members] if spec.tls.bus else [])]
    missing = [name for name in needed if not facts.covers(name)]
    if missing:
        return f"it has no name for {' and '.join(missing)}: issue one for *.{members} and {members}"
    return ""


def _expiring(view: ClusterView, files: TlsFiles) -> tuple[Note, ...]:
    if files.facts is None or files.facts.ends_s - view.now_s > WARNED_S:
        return ()
    text = (
        f"the certificate in the Secret {secret_name(view.spec)} expires at {timestamp(files.facts.ends_s)}: renew it"
    )
    return (problem("CertificateExpiring", text),)


# --- an authority of the cluster's own --------------------------------------------------------------------------------


def _own(view: ClusterView) -> CertificateDecision:
    """Decide for a certificate that the operator signs."""
    stored, files = view.observed.authorities, view.observed.tls
    authorities, request = _authorities(view, stored, files)
    requests = {names.authority_secret(view.spec.name): request} if request else {}
    usable = files is not None and not files.wrong
    if stored is None:
        return _decided(Certificates("", None, authorities, requests), possible=usable)
    trusted, outside = stored.trusted(), verified_hosts(view)
    if files is not None and not stored.current.key:
        files = replace(files, trusted=trusted)  # which the lost authority signed: only the trust changes
    elif files is None or _is_due(view, stored, files, trusted, outside):
        ends_s = min(view.now_s + CERTIFICATE_S, pki.facts(stored.current.certificate).ends_s)
        hosts = (*dns_names(view.spec, outside.names), *outside.addresses)
        request = _request(view, (CERTIFICATE, KEY), hosts, ends_s, stored.current)
        requests |= {names.tls_secret(view.spec.name): request}
        files = TlsFiles(_PENDING, trusted)
    return _decided(Certificates(trusted, files, authorities, requests), possible=usable)


def _decided(wanted: Certificates, *, possible: bool) -> CertificateDecision:
    notes = () if possible else (progress("CertificatePending", "the certificate is being signed", "Healing"),)
    return CertificateDecision(wanted, Decision(notes=notes), possible)


def _authorities(
    view: ClusterView, stored: Authorities | None, files: TlsFiles | None
) -> tuple[Authorities, CertificateRequest | None]:
    """Return the desired authorities, and a request for a new one among them."""
    rotation, now = view.spec.tls.rotation, timestamp(view.now_s)
    if stored is None:
        if files is None or files.wrong:
            return Authorities(_PENDING, None, "", rotation, now), _authority(view, ("ca.crt", "ca.key"))
        lost = Authorities(Pem(files.trusted, ""), _PENDING, "", rotation, now)
        return lost, _authority(view, ("next-ca.crt", "next-ca.key"))
    waited = stored.changed_s_ago >= view.spec.tls.grace_s
    if stored.following is not None:
        published = files is not None and files.trusted == stored.trusted()
        if waited and published:
            former = pki.bundle(stored.current.certificate)
            return Authorities(stored.following, None, former, stored.rotation, now), None
        return stored, None
    signs = files is not None and files.facts is not None and files.facts.signing_key == _key_of(stored.current)
    if stored.former:
        return (replace(stored, former="", changed_at=now) if waited and signs else stored), None
    ends_s = pki.facts(stored.current.certificate).ends_s
    if rotation != stored.rotation or ends_s - view.now_s < REPLACED_S:
        following = replace(stored, following=_PENDING, rotation=rotation, changed_at=now)
        return following, _authority(view, ("next-ca.crt", "next-ca.key"))
    return stored, None


def _authority(view: ClusterView, entries: tuple[str, str]) -> CertificateRequest:
    name = f"{view.spec.namespace}/{view.spec.name} {timestamp(view.now_s)[:10]}"
    return _request(view, entries, (name,), view.now_s + AUTHORITY_S, None)


def _request(
    view: ClusterView, entries: tuple[str, str], found: tuple[str, ...], ends_s: float, signer: Pem | None
) -> CertificateRequest:
    return CertificateRequest(entries, found, signer, view.now_s - BACKDATED_S, ends_s)


def _is_due(view: ClusterView, stored: Authorities, files: TlsFiles, trusted: str, outside: Hosts) -> bool:
    """Return whether the certificate must be issued again.

    Addresses that no member has any more are not worth it: pods move between the same Kubernetes nodes.
    """
    facts = files.facts
    return (
        facts is None
        or files.trusted != trusted
        or facts.ends_s - view.now_s < min(RENEWED_S, (facts.ends_s - facts.begins_s) / 3)
        or facts.signing_key != _key_of(stored.current)
        or facts.dns_names != frozenset(dns_names(view.spec, outside.names))
        or not all(map(facts.covers, outside.addresses))
    )


def _key_of(authority: Pem) -> str:
    return pki.facts(authority.certificate).subject_key
