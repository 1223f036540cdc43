"""Removal of secrets from diagnostics that users share."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any

REDACTED = "(redacted)"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation that holds a copy of the whole object, the values of Secrets included."""
_SECRET_NAME = re.compile(r"PASSWORD|PASSWD|SECRET|TOKEN|CREDENTIAL|APIKEY|API_KEY|PRIVATE", re.IGNORECASE)
_DIRECTIVE = re.compile(r"^(\s*(?:requirepass\S*|masterauth)[ \t]+)\S.*$", re.IGNORECASE | re.MULTILINE)


def redacted(value: Any, secrets: Sequence[str]) -> Any:
    """Redact the values of Secrets, of variables with secret-like names, and what `scrubbed` redacts, in an object."""
    if isinstance(value, str):
        return scrubbed(value, secrets)
    if isinstance(value, list):
        return [redacted(each, secrets) for each in value]
    if not isinstance(value, Mapping):
        return value
    kept = {name: redacted(each, secrets) for name, each in value.items() if name != LAST_APPLIED}
    if kept.get("kind") == "Secret":
        kept |= {part: dict.fromkeys(kept[part], REDACTED) for part in ("data", "stringData") if kept.get(part)}
    if isinstance(kept.get("value"), str) and _SECRET_NAME.search(str(kept.get("name", ""))):
        kept["value"] = REDACTED
    return kept


def scrubbed(text: str, secrets: Sequence[str]) -> str:
    """Redact the values of password directives, and every occurrence of these secrets, plain or base64."""
    text = _DIRECTIVE.sub(rf"\1{REDACTED}", text)
    for secret in secrets:
        for form in (secret, base64.b64encode(secret.encode()).decode()):
            text = text.replace(form, REDACTED)
    return text
