"""Whom a certificate names."""

from __future__ import annotations

from typing import Any


def common_name(certificate: dict[str, Any] | None) -> bytes:
    """The common name in the subject of a verified certificate, as `SSLObject.getpeercert` returns it.

    Empty without a certificate, and for a subject with several common names, which could mean any of them.
    """
    if not certificate:
        return b""
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return names[0].encode() if len(names) == 1 else b""
