"""What Secrets say about certificates: that of the brokers, and the authorities of the cluster's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from disque_operator import pki
from disque_operator.pki import CertificateFacts, Pem, PemError

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
AUTHORITY: Final = "ca.crt"
"""Entries of a Secret with a certificate, as cert-manager names them."""

_CURRENT: Final = ("ca.crt", "ca.key")
_FOLLOWING: Final = ("next-ca.crt", "next-ca.key")
_FORMER: Final = "former-ca.crt"


@dataclass(frozen=True)
class TlsFiles:
    """The certificate of the brokers."""

    pem: Pem
    trusted: str
    """The authorities that brokers and clients trust, in PEM."""
    facts: CertificateFacts | None = None
    """What the certificate says; None if it cannot be read."""
    wrong: str = ""
    """Why it cannot be used; empty if it can."""

    def entries(self) -> dict[str, str]:
        """Return the entries of the Secret."""
        return {CERTIFICATE: self.pem.certificate, KEY: self.pem.key, AUTHORITY: self.trusted}


@dataclass(frozen=True)
class Authorities:
    """The authorities of the cluster's own, which the operator renews."""

    current: Pem
    """The one that signs. Without a key if it was lost."""
    following: Pem | None = None
    """The next one, which is already trusted."""
    former: str = ""
    """The certificate of the previous one, while it is still trusted."""
    rotation: int = 0
    """`tls.rotation` for which the newest one was made."""
    changed_at: str = ""
    changed_s_ago: float = 0.0
    """How long ago one was added or replaced."""

    def entries(self) -> dict[str, str]:
        """Return the entries of the Secret."""
        found = dict(zip(_CURRENT, (self.current.certificate, self.current.key), strict=True))
        if self.following is not None:
            found |= dict(zip(_FOLLOWING, (self.following.certificate, self.following.key), strict=True))
        return {name: text for name, text in (found | {_FORMER: self.former}).items() if text}

    def trusted(self) -> str:
        """Return all certificates that brokers and clients trust."""
        following = self.following.certificate if self.following is not None else ""
        return pki.bundle(self.current.certificate, following, self.former)


@dataclass(frozen=True)
class CertificateRequest:
    """A certificate to make, with a new key, and where its Secret keeps both."""

    entries: tuple[str, str]
    names: tuple[str, ...]
    """Its DNS names and IP addresses; of an authority, its name."""
    signer: Pem | None
    """The authority that signs it; None for a new authority."""
    begins_s: float
    ends_s: float

    def made(self) -> dict[str, str]:
        """Make the certificate and return the entries."""
        if self.signer is None:
            pem = pki.new_authority(self.names[0], self.begins_s, self.ends_s)
        else:
            pem = pki.new_certificate(self.signer, self.names, self.begins_s, self.ends_s)
        return dict(zip(self.entries, (pem.certificate, pem.key), strict=True))


def read_files(entries: Mapping[str, str]) -> TlsFiles:
    """Read the certificate of the brokers from the entries of a Secret."""
    pem = Pem(entries.get(CERTIFICATE, ""), entries.get(KEY, ""))
    trusted = entries.get(AUTHORITY, "")
    try:
        facts = pki.facts(pem.certificate, CERTIFICATE)
        pki.check(pem, trusted)
    except PemError as error:
        return TlsFiles(pem, trusted, None, str(error))
    return TlsFiles(pem, trusted, facts)


def read_authorities(
    entries: Mapping[str, str], rotation: int, changed_at: str, changed_s_ago: float
) -> Authorities | None:
    """Read the authorities from the entries of their Secret; None if they cannot be used."""
    current, following = (
        Pem(entries.get(certificate, ""), entries.get(key, "")) for certificate, key in (_CURRENT, _FOLLOWING)
    )
    found = Authorities(
        current,
        following if following.certificate and following.key else None,
        entries.get(_FORMER, ""),
        rotation,
        changed_at,
        changed_s_ago,
    )
    try:
        found.trusted()
        pki.facts(current.certificate, _CURRENT[0])
    except PemError:
        return None
    return found
