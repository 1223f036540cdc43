"""The passwords of the nodes, as a Secret: for the nodes a configuration file, for clients the word itself."""

from __future__ import annotations

from base64 import b64encode

from disque_operator import names
from disque_operator.observed import Passwords
from disque_operator.resources.common import CONFIG_FILE, child
from disque_operator.spec import Json, Spec
from disqued.resp.words import quote_word


def secret(spec: Spec, passwords: Passwords | None) -> Json:
    """The Secret. Without passwords it is there all the same: pods mount it, and need not change when they come.

    A password that is switched off stays for a node that still has it; the file does not say it any more.
    """
    words = {}
    annotations = {}
    if passwords is not None:
        words = {"requirepass": passwords.current}
        annotations = {names.ROTATION: str(passwords.rotation)}
        if passwords.former is not None:
            words["requirepass-former"] = passwords.former
        if passwords.rotated_at:
            annotations[names.ROTATED_AT] = passwords.rotated_at
    keys = {"requirepass": "password", "requirepass-former": "former-password"}
    data = {keys[directive]: word.encode() for directive, word in words.items()}
    said = words.items() if spec.auth.enabled else ()
    lines = [b"%b %b\n" % (directive.encode(), quote_word(word.encode())) for directive, word in said]
    data[CONFIG_FILE] = b"".join(lines)
    encoded = {key: b64encode(value).decode() for key, value in data.items()}
    return child(spec, "v1", "Secret", names.auth_secret(spec.name), {"type": "Opaque", "data": encoded}, annotations)
