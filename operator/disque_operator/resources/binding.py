"""What a client needs to connect, as the entries of a Secret that the Service Binding specification names."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.certificate_files import AUTHORITY
from disque_operator.resources.encryption import client_port, serves_tls
from disque_operator.spec import Spec

BINDING: Final = "disque"
"""The entries `type` and `provider`."""


def binding(spec: Spec, user: str, password: str | None, trusted: str) -> Json:
    """Return type and data of a Secret for clients of a cluster; without a password, clients need no login.

    `trusted` are the authorities that sign certificates; empty without TLS.
    """
    host, port = names.client_host(spec.name, spec.namespace), str(client_port(spec))
    data = {"type": BINDING, "provider": BINDING, "host": host, "port": port}
    login = ""
    if password is not None:
        data |= {"username": user, "password": password}
        login = f"{quote(user, safe='')}:{quote(password, safe='')}@"
    data["uri"] = f"{'disques' if serves_tls(spec) else 'disque'}://{login}{host}:{port}"
    if trusted:
        data[AUTHORITY] = trusted
    return {
        "type": f"servicebinding.io/{BINDING}",
        "data": encoded({key: word.encode() for key, word in data.items()}),
    }


def encoded(data: Mapping[str, bytes]) -> dict[str, str]:
    """Return values as a Secret has them."""
    return {key: b64encode(value).decode() for key, value in data.items()}
