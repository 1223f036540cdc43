"""Passwords out of what people hand on."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any

REDACTED = "(redacted)"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation with a whole object in it, Secrets too."""
_SECRET_NAME = re.compile(r"PASSWORD|PASSWD|SECRET|TOKEN|CREDENTIAL|APIKEY|API_KEY|PRIVATE", re.IGNORECASE)
_DIRECTIVE = re.compile(rb"^(\s*(?:requirepass\S*|masterauth)\s+)\S.*$", re.IGNORECASE | re.MULTILINE)


def redacted(value: Any) -> Any:
    """The object without the values of Secrets, and of variables whose names say that they are secret."""
    if isinstance(value, list):
        return [redacted(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    kept = {name: redacted(each) for name, each in value.items() if name != LAST_APPLIED}
    if kept.get("kind") == "Secret":
        kept |= {part: dict.fromkeys(kept[part], REDACTED) for part in ("data", "stringData") if kept.get(part)}
    if isinstance(kept.get("value"), str) and _SECRET_NAME.search(str(kept.get("name", ""))):
        kept["value"] = REDACTED
    return kept


def scrubbed(content: bytes, secrets: Iterable[str]) -> bytes:
    """A file without the directives that say passwords, and without these secrets wherever they stand."""
    content = _DIRECTIVE.sub(lambda found: found[1] + REDACTED.encode(), content)
    for secret in secrets:
        for form in (secret.encode(), base64.b64encode(secret.encode())):
            content = content.replace(form, REDACTED.encode())
    return content
