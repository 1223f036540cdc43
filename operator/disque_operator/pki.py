"""Certificates: reads those in Secrets, and makes authorities and certificates with new keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LONGEST_COMMON_NAME: Final = 64
SECRET_BITS: Final = 256


@dataclass(frozen=True)
class Pem:
    """A certificate and its key in PEM. The key is empty if it is not known."""

    certificate: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class CertificateFacts:
    """What a certificate says."""

    dns_names: frozenset[str]
    issuer: str
    subject_key: str
    """The identifier of its key."""
    signing_key: str
    """The identifier of the key that signed it; empty if it does not say so."""
    begins_s: float
    ends_s: float
    """When it, or the first of the intermediate certificates after it, expires, in seconds since 1970."""
    addresses: frozenset[str] = frozenset()
    """Its IP addresses."""

    def covers(self, host: str) -> bool:
        """Return whether clients that connect to a name or an IP address can verify it."""
        address = ip_of(host)
        if address is not None:
            return str(address) in self.addresses
        return bool({host, f"*.{host.partition('.')[2]}"} & self.dns_names)


class PemError(Exception):
    """Text that is no usable certificate or key; the message says what is wrong with which entry."""


def ip_of(host: str) -> IPv4Address | IPv6Address | None:
    """Return a host as an IP address; None if it is a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def facts(text: str, entry: str = "tls.crt") -> CertificateFacts:
    """Return what the first certificate in a PEM text says; `entry` names the text in errors.

    Raises:
        PemError: it has no certificate.
    """
    certificate = _certificates(text, entry)[0]
    return CertificateFacts(
        dns_names=frozenset(_alternatives(certificate, x509.DNSName)),
        issuer=certificate.issuer.rfc4514_string(),
        subject_key=x509.SubjectKeyIdentifier.from_public_key(certificate.public_key()).digest.hex(),
        signing_key=_signing_key(certificate),
        begins_s=certificate.not_valid_before_utc.timestamp(),
        ends_s=min(one.not_valid_after_utc.timestamp() for one in _certificates(text, entry)),
        addresses=frozenset(map(str, _alternatives(certificate, x509.IPAddress))),
    )


def check(pem: Pem, trusted: str) -> None:
    """Check that a key belongs to its certificate, and that there are authorities.

    Raises:
        PemError: they do not fit.
    """
    _certificates(trusted, "ca.crt")
    certificate = _certificates(pem.certificate, "tls.crt")[0]
    try:
        key = load_pem_private_key(pem.key.encode(), None)
    except (ValueError, TypeError):
        raise PemError("tls.key has no private key without a password") from None
    one, other = (
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        for public in (key.public_key(), certificate.public_key())
    )
    if one != other:
        raise PemError("tls.key does not belong to tls.crt")


def bundle(*texts: str) -> str:
    """Return the certificates of several PEM texts as one text, each once."""
    found = [one.public_bytes(Encoding.PEM).decode() for text in texts if text for one in _certificates(text, "ca.crt")]
    return "".join(dict.fromkeys(found))


def new_secret() -> str:
    """Make a random secret."""
    return AESGCM.generate_key(SECRET_BITS).hex()


def new_authority(name: str, begins_s: float, ends_s: float) -> Pem:
    """Make an authority that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(name)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = (
        _builder(subject, subject, key.public_key(), begins_s, ends_s)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
    )
    return Pem(_pem(builder.sign(key, SHA256())), _key_pem(key))


def new_certificate(signer: Pem, hosts: Sequence[str], begins_s: float, ends_s: float) -> Pem:
    """Make a certificate for servers and clients, with a new key, signed by an authority.

    `hosts` are DNS names and IP addresses; the first one is also its subject.
    """
    authority = _certificates(signer.certificate, "ca.crt")[0]
    signing = load_pem_private_key(signer.key.encode(), None)
    assert isinstance(signing, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    subject_key = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = (
        _builder(_subject(hosts[0]), authority.subject, key.public_key(), begins_s, ends_s)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(subject_key), critical=False)
    )
    return Pem(_pem(builder.sign(signing, SHA256())), _key_pem(key))


def _certificates(text: str, entry: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        raise PemError(f"{entry} has no certificate in the PEM format") from None


def _alternatives(certificate: x509.Certificate, kind: type[x509.DNSName | x509.IPAddress]) -> list[Any]:
    """Return the alternative names of a kind; none if it has none or they cannot be read."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return []
    return list(found.get_values_for_type(kind))


def _alternative(host: str) -> x509.GeneralName:
    address = ip_of(host)
    return x509.DNSName(host) if address is None else x509.IPAddress(address)


def _signing_key(certificate: x509.Certificate) -> str:
    try:
        found = certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
    except (x509.ExtensionNotFound, ValueError):
        return ""
    return found.hex() if found else ""


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:LONGEST_COMMON_NAME])])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, begins_s: float, ends_s: float
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.fromtimestamp(begins_s, UTC))
        .not_valid_after(datetime.fromtimestamp(ends_s, UTC))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
