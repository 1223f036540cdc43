"""TLS of the clients: the settings for connections."""

from __future__ import annotations

import ssl


def tls_context(
    *,
    cafile: str | None = None,
    certfile: str | None = None,
    keyfile: str | None = None,
    insecure: bool = False,
) -> ssl.SSLContext:
    """Return settings for TLS that verify the node and its name.

    Args:
        cafile: PEM file of the authorities to trust; None for those of the system.
        certfile: PEM file with the certificate of this client, for nodes that require one.
        keyfile: PEM file with its key, which is not encrypted; None if `certfile` contains it.
        insecure: Accept any certificate. A program that intercepts the connection can then read and change it.

    Raises:
        OSError: a file cannot be read, or contains no certificate or key that fits (`ssl.SSLError`).
    """
    context = ssl.create_default_context(cafile=cafile)
    if certfile is not None:
        key = keyfile or certfile

        def refuse() -> str:
            raise ssl.SSLError(f"the key in {key} is encrypted: only keys without a password can be used")

        context.load_cert_chain(certfile, keyfile, password=refuse)  # by default OpenSSL asks on the terminal
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
