"""TLS of one node: the settings for its connections, made from the directives `tls-*` and the files that they name.

Connections take the settings when they are made, so a change of the files or directives needs no restart and ends no
connection. Settings that do not work, for example because a key does not belong to its certificate, never replace those
that do.
"""

from __future__ import annotations

import base64
import binascii
import copy
import os
import re
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from disqued.config import Config
from disqued.server.fatal import Fatal

CHECK_S: Final = 1.0
"""How often the files are compared with those that were read last."""
_FILES: Final = ("tls_cert_file", "tls_key_file", "tls_ca_cert_file")
_VERSIONS: Final = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
_VERIFY: Final = {"yes": ssl.CERT_REQUIRED, "optional": ssl.CERT_OPTIONAL, "no": ssl.CERT_NONE}
_CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_TIMES: Final = {0x17: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}
"""The formats of UTCTime and GeneralizedTime (RFC 5280, 4.1.2.5)."""


class TlsError(Exception):
    """The directives or the files do not work; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What new connections use."""

    clients: ssl.SSLContext
    """For the port for clients."""
    http: ssl.SSLContext
    """For the HTTP port: requests no certificates."""
    bus_accept: ssl.SSLContext
    """For connections of other nodes, whose certificates are verified with `tls-cluster`."""
    bus_dial: ssl.SSLContext
    """For connections to other nodes, whose certificates are verified with `tls-cluster`."""
    expires_s: int
    """When the first certificate of `tls-cert-file` expires, in unix seconds."""


def used(config: Config) -> list[str]:
    """The directives that switch TLS on."""
    bus = config.tls_cluster != "no"
    uses = (("tls-port", config.tls_port), ("tls-cluster", bus), ("http-tls", config.http_tls))
    return [name for name, on in uses if on]


def load(config: Config) -> Settings:
    """Read the files and return the settings.

    OpenSSL reads the files for each kind of connection. If one is replaced meanwhile, the next check sees that the
    files are not those that were there before (`Certificates.renew_if_changed`), and reads them again.

    Raises:
        TlsError: a directive is missing, a file cannot be read, or the files do not fit together.
    """
    names = " and ".join(used(config))
    if not config.tls_cert_file:
        raise TlsError(f"{names} needs a certificate: set tls-cert-file and tls-key-file")
    if config.tls_port and config.tls_auth_clients != "no" and not config.tls_ca_cert_file:
        raise TlsError(
            f"tls-auth-clients {config.tls_auth_clients} needs tls-ca-cert-file to verify the certificates of clients: "
            "set it, or set tls-auth-clients no"
        )
    if config.tls_cluster != "no" and not config.tls_ca_cert_file:
        raise TlsError("tls-cluster needs tls-ca-cert-file to verify the certificates of other nodes: set it")
    key_file = config.tls_key_file or config.tls_cert_file
    certificates = _read("tls-cert-file", config.tls_cert_file)
    _read("tls-key-file", key_file)
    http = _context(config)
    clients = _context(config)
    if config.tls_port and config.tls_auth_clients != "no":
        _trust(clients, config.tls_ca_cert_file)
        clients.verify_mode = _VERIFY[config.tls_auth_clients]
    bus_accept = _context(config)
    bus_dial = _context(config, ssl.PROTOCOL_TLS_CLIENT)
    bus_dial.check_hostname = False  # `membership.certified` compares the names, in both directions
    if config.tls_cluster != "no":
        for context in (bus_accept, bus_dial):
            _trust(context, config.tls_ca_cert_file)
            context.verify_mode = ssl.CERT_REQUIRED
    expires_s = min(_expiries("tls-cert-file", config.tls_cert_file, certificates))
    return Settings(clients, http, bus_accept, bus_dial, expires_s)


def _context(config: Config, side: int = ssl.PROTOCOL_TLS_SERVER) -> ssl.SSLContext:
    """The settings of one side, by default those of a server that requests no certificates."""
    context = ssl.SSLContext(side)
    context.minimum_version = _VERSIONS[config.tls_min_version]
    if config.tls_ciphers:
        try:
            context.set_ciphers(config.tls_ciphers)
        except ssl.SSLError as error:
            raise TlsError(f"tls-ciphers '{config.tls_ciphers}' names no cipher that OpenSSL knows") from error
    key_file = config.tls_key_file or config.tls_cert_file
    password = _Password(config.tls_key_file_pass)
    try:
        context.load_cert_chain(config.tls_cert_file, key_file, password=password)
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(_why_no_pair(config.tls_cert_file, key_file, password, error)) from error
    return context


class _Password:
    """The password of the key. OpenSSL calls it for a key that is encrypted, and asks the terminal if there is none."""

    def __init__(self, password: bytes) -> None:
        self.password = password
        self.needed = False

    def __call__(self) -> bytes:
        self.needed = True
        return self.password


def _why_no_pair(cert_file: str, key_file: str, password: _Password, error: Exception) -> str:
    reason = getattr(error, "reason", None)
    if password.needed and reason != "KEY_VALUES_MISMATCH":
        if not password.password:
            return f"the key in {key_file} is encrypted: set tls-key-file-pass"
        return f"tls-key-file-pass is not the password of the key in {key_file}"
    if reason == "KEY_VALUES_MISMATCH":
        return f"the key in {key_file} does not belong to the certificate in {cert_file}"
    what = str(reason or error).replace("_", " ").lower()
    return f"{cert_file} and {key_file} are not a certificate and its key in PEM format: {what}"


def _trust(context: ssl.SSLContext, path: str) -> None:
    """Verify certificates with the authorities in a file."""
    name = "tls-ca-cert-file"
    if max(_expiries(name, path, _read(name, path))) <= time.time():
        raise TlsError(f"all certificates in {path} (tls-ca-cert-file) are expired")
    try:
        context.load_verify_locations(path)
    except ssl.SSLError as error:
        raise TlsError(f"{path} (tls-ca-cert-file) has no certificates in PEM format") from error


def _read(name: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - the path is text from the configuration
            return file.read()
    except OSError as error:
        raise TlsError(f"cannot read {path} ({name}): {error.strerror}") from error


def _expiries(name: str, path: str, content: bytes) -> list[int]:
    """When the certificates of a file expire, in unix seconds."""
    try:
        found = [_not_after(base64.b64decode(text)) for text in _CERTIFICATE.findall(content)]
    except (binascii.Error, IndexError, KeyError, ValueError) as error:
        raise TlsError(f"a certificate in {path} ({name}) is damaged") from error
    if not found:
        raise TlsError(f"{path} ({name}) has no certificates in PEM format")
    return found


def _not_after(der: bytes) -> int:
    """When a certificate expires, in unix seconds.

    The path in its structure (RFC 5280, 4.1): Certificate, TBSCertificate, then past the optional version, the serial
    number, the signature and the issuer to the validity, whose second time it is.
    """
    at, _ = _inside(der, _inside(der, 0)[0])
    if der[at] == 0xA0:
        at = _inside(der, at)[1]
    for _ in range(3):
        at = _inside(der, at)[1]
    not_before, _ = _inside(der, at)
    at = _inside(der, not_before)[1]
    start, end = _inside(der, at)
    ends = datetime.strptime(der[start:end].decode("ascii"), _TIMES[der[at]]).replace(tzinfo=UTC)
    return int(ends.timestamp())


def _inside(der: bytes, at: int) -> tuple[int, int]:
    """Where the content of the value at `at` begins and ends."""
    length, start = der[at + 1], at + 2
    if length & 0x80:
        size = length & 0x7F
        length, start = int.from_bytes(der[start : start + size], "big"), start + size
    return start, start + length


class Certificates:
    """The settings in use, and the files that they come from."""

    def __init__(self, config: Config, log: Callable[[str, str], None]) -> None:
        """Read the files if a port uses TLS.

        Raises:
            Fatal: the directives or the files do not work.
        """
        self._config = config
        self._log = log
        self._seen: list[object] = []
        """What identifies the files that were read last."""
        self._settings: Settings | None = None
        self.refused = False
        """Whether the files that were read last do not work, and older ones are in use."""
        if used(config):
            self._seen = self._look()
            try:
                self._settings = load(config)
            except TlsError as error:
                raise Fatal(f"Can't use TLS: {error}.") from error
            self._warn_if_expired()

    @property
    def expires_s(self) -> int:
        """When the certificate in use expires, in unix seconds; 0 without TLS."""
        return self._settings.expires_s if self._settings is not None else 0

    def client_settings(self) -> ssl.SSLContext:
        """The settings for a new connection of a client."""
        assert self._settings is not None
        return self._settings.clients

    def http_settings(self) -> ssl.SSLContext:
        """The settings for a new connection to the HTTP port."""
        assert self._settings is not None
        return self._settings.http

    def bus_accept_settings(self) -> ssl.SSLContext:
        """The settings for a new connection of another node."""
        assert self._settings is not None
        return self._settings.bus_accept

    def bus_dial_settings(self) -> ssl.SSLContext:
        """The settings for a new connection to another node."""
        assert self._settings is not None
        return self._settings.bus_dial

    def change(self, attribute: str, value: object) -> str:
        """Use another value of a directive; returns why that does not work, empty if it does."""
        if self._settings is None:
            return ""
        changed = copy.copy(self._config)
        changed.assign(attribute, value)
        seen = self._look(changed)
        try:
            self._settings = _load_valid(changed)
        except TlsError as error:
            return str(error)
        self._seen = seen
        self.refused = False
        return ""

    def renew_if_changed(self) -> None:
        """Read the files again if they are not those that were read last."""
        if self._settings is not None and self._look() != self._seen:
            self.renew()

    def renew(self) -> None:
        """Read the files again, and use them for new connections if they work."""
        if self._settings is None:
            return
        self._seen = self._look()
        try:
            renewed = _load_valid(self._config)
        except TlsError as error:
            self.refused = True
            self._log("warning", f"TLS certificates not renewed, the previous ones stay in use: {error}")
            return
        self._settings = renewed
        self.refused = False
        left_days = (renewed.expires_s - time.time()) / 86400
        self._log("notice", f"TLS certificates read, new connections use them: expires_in_days={left_days:.1f}")

    def _warn_if_expired(self) -> None:
        if self.expires_s <= time.time():
            self._log("warning", f"The certificate in {self._config.tls_cert_file} is expired: clients refuse it")

    def _look(self, config: Config | None = None) -> list[object]:
        """What identifies the contents of the files without reading them. Links are followed."""
        return [_identity(getattr(config or self._config, attribute)) for attribute in _FILES]


def _load_valid(config: Config) -> Settings:
    """The settings for a configuration that replaces one that works. Raises TlsError, also if they are expired."""
    settings = load(config)
    if settings.expires_s <= time.time():
        raise TlsError(f"the certificate in {config.tls_cert_file} is expired")
    return settings


def _identity(path: str) -> object:
    if not path:
        return None
    try:
        found = os.stat(path)  # noqa: PTH116 - the path is text from the configuration
    except OSError as error:
        return error.errno
    return path, found.st_ino, found.st_dev, found.st_mtime_ns, found.st_size
