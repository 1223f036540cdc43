"""How the operator verifies brokers with TLS, and proves itself to those that ask for a certificate."""

from __future__ import annotations

import os
import ssl
from functools import lru_cache

from disque_operator.certificate_files import TlsFiles


def client_context(published: str, files: TlsFiles | None) -> ssl.SSLContext | None:
    """Return the settings of connections to brokers; None if no authority is known.

    Args:
        published: The authorities that clients trust. They are known even if the Secret is gone.
        files: The certificate of the brokers, which is also that of the operator if brokers ask for one.
    """
    trusted = f"{files.trusted if files else ''}\n{published}"
    pair = f"{files.pem.certificate}\n{files.pem.key}" if files and not files.wrong else ""
    return _context(trusted, pair)


@lru_cache(maxsize=512)
def _context(trusted: str, pair: str) -> ssl.SSLContext | None:
    try:
        context = ssl.create_default_context(cadata=trusted)
        if pair:
            _load(context, pair)
    except (ssl.SSLError, ValueError):
        return None
    return context


def _load(context: ssl.SSLContext, pair: str) -> None:
    """Load a certificate and its key, which Python reads only from a file, without writing them to a disk."""
    descriptor = os.memfd_create("certificate")
    with os.fdopen(descriptor, "w") as file:
        file.write(pair)
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
