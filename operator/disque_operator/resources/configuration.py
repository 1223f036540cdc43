"""The configuration of the brokers: a ConfigMap with settings, a Secret with passwords; and the Secret for clients."""

from __future__ import annotations

from typing import Final

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.directives import lines
from disque_operator.observed import Passwords
from disque_operator.resources.binding import binding, encoded
from disque_operator.resources.common import AUTH_PATH, CONFIG_FILE, Wanted, child
from disque_operator.resources.users import KEPT_KEY, user_lines, written
from disque_operator.spec import Spec
from disqued.resp.words import quote_word

USER: Final = "default"
"""The user whose password is `requirepass`."""


def config_map(spec: Spec) -> Json:
    """Return the ConfigMap with the configuration file, which is the same for all brokers.

    Settings of a single broker are on its command line.
    """
    return child(spec, "v1", "ConfigMap", names.config_map(spec.name), {"data": {CONFIG_FILE: _settings(spec)}})


def _settings(spec: Spec) -> str:
    fixed = {
        "port": names.CLIENT_PORT,
        "http-port": names.HTTP_PORT,
        "cluster-name": names.cluster_name(spec.name, spec.namespace),
        "cluster-seeds": f"{names.members_service(spec.name)}.{spec.namespace}.svc",
        "protected-mode": "no",  # spec.auth and spec.networkPolicy protect brokers
        "shutdown-on-sigterm": "rewrite-aof",
        "aof-restart-marker": "yes",
    }
    return "\n".join(
        [
            f"# The operator reverts changes of this file: set directives in spec.config of {names.KIND} {spec.name}.",
            *(f"{name} {value}" for name, value in fixed.items()),
            *lines(spec),
            f"include {AUTH_PATH}/{CONFIG_FILE}",
            "",
        ]
    )


def secret(spec: Spec, wanted: Wanted) -> Json:
    """Return the Secret with passwords and users.

    It exists without them too, because pods mount it and must not change when one is set. When passwords are switched
    off, the Secret keeps them for brokers that still use them, but not in its file.
    """
    passwords = wanted.passwords
    data: dict[str, bytes] = {}
    annotations: dict[str, str] = {}
    file = b""
    if passwords is not None:
        data = {key: word.encode() for key, word in _keys(passwords).items()}
        annotations = _annotations(passwords)
        if spec.auth.enabled:
            file = _password_settings(passwords)
    file += user_lines(wanted.users)
    kept = written(wanted.users, wanted.queues, wanted.schedules)
    if kept:
        data[KEPT_KEY] = kept
    body = {"type": "Opaque", "data": encoded({**data, CONFIG_FILE: file})}
    return child(spec, "v1", "Secret", names.auth_secret(spec.name), body, annotations)


def client_secret(spec: Spec, passwords: Passwords | None, trusted: str) -> Json:
    """Return the Secret for clients, with the entries of the Service Binding specification.

    `trusted` are the authorities that sign certificates; empty without TLS. The Secret shows only the password that all
    brokers accept. From it, a deleted Secret of the brokers is restored.
    """
    used = passwords if spec.auth.enabled else None
    body = binding(spec, USER, used.current if used else None, trusted)
    return child(spec, "v1", "Secret", names.client_secret(spec.name), body, _annotations(used) if used else None)


def _annotations(passwords: Passwords) -> dict[str, str]:
    found = {names.ROTATION: str(passwords.rotation), names.ROTATED_AT: passwords.rotated_at}
    return {name: value for name, value in found.items() if value}


def _keys(passwords: Passwords) -> dict[str, str]:
    found = {
        "password": passwords.current,
        "former-password": passwords.former,
        "next-password": passwords.following,
    }
    return {key: password for key, password in found.items() if password is not None}


def _password_settings(passwords: Passwords) -> bytes:
    found = {"requirepass": passwords.current, "requirepass-former": passwords.following or passwords.former}
    settings = (f"{name} ".encode() + quote_word(password.encode()) for name, password in found.items() if password)
    return b"".join(line + b"\n" for line in settings)
