"""The passwords of the nodes, as a Secret: for the nodes a configuration file, for clients the word itself."""

from __future__ import annotations

from base64 import b64encode

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.observed import Passwords
from disque_operator.resources.common import CONFIG_FILE, child
from disque_operator.spec import Spec
from disqued.resp.words import quote_word


def secret(spec: Spec, passwords: Passwords | None) -> Json:
    """The Secret. Without passwords it is there all the same: pods mount it, and need not change when they come.

    A password that is switched off stays for a node that still has it; the file does not say it any more.
    """
    data: dict[str, bytes] = {}
    annotations: dict[str, str] = {}
    file = b""
    if passwords is not None:
        data = {key: word.encode() for key, word in _words(passwords).items()}
        annotations = {names.ROTATION: str(passwords.rotation)}
        if passwords.rotated_at:
            annotations[names.ROTATED_AT] = passwords.rotated_at
        if spec.auth.enabled:
            file = _file(passwords)
    encoded = {key: b64encode(value).decode() for key, value in {**data, CONFIG_FILE: file}.items()}
    return child(spec, "v1", "Secret", names.auth_secret(spec.name), {"type": "Opaque", "data": encoded}, annotations)


def _words(passwords: Passwords) -> Json:
    words = {
        "password": passwords.current,
        "former-password": passwords.former,
        "next-password": passwords.following,
    }
    return {key: word for key, word in words.items() if word is not None}


def _file(passwords: Passwords) -> bytes:
    """The directives for nodes."""
    words = {"requirepass": passwords.current, "requirepass-former": passwords.following or passwords.former}
    lines = (f"{directive} ".encode() + quote_word(word.encode()) for directive, word in words.items() if word)
    return b"".join(line + b"\n" for line in lines)
