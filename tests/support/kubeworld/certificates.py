"""A model of certificates in running pods: the kubelet of each pod updates its files some time after the Secret."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from disque_operator import names, pki
from disque_operator.apivalues import Json, seconds
from disque_operator.certificate_files import AUTHORITY, CERTIFICATE, TlsFiles, read_authorities, read_files
from disque_operator.resources.encryption import secret_name
from disque_operator.spec import Spec
from support.kubeworld.objects import Api, InvariantError

KUBELET_S: Final = 60
"""How long a kubelet takes at most to update the files of a pod."""

_read = lru_cache(maxsize=256)(lambda items: read_files(dict(items)))
_facts = lru_cache(maxsize=1024)(pki.facts)


class MountedCertificates:
    """The Secret with the certificate, and the files in the pods."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._history: list[tuple[float, dict[str, str]]] = []
        self.serves_certificates = False
        """Whether cert-manager is installed."""
        self.mounted: dict[str, TlsFiles] = {}
        """The files of each pod."""

    def secret(self, spec: Spec) -> dict[str, str] | None:
        """Return the entries of the Secret; None if it does not exist."""
        live = self._api.get("Secret", secret_name(spec))
        return None if live is None else _decoded(live)

    def step(self, spec: Spec, now_s: float, pods: Mapping[str, Any]) -> None:
        """Update the files of all pods, and check that their brokers trust each other."""
        entries = self.secret(spec) if spec.tls.enabled else None
        if entries is not None and (not self._history or self._history[-1][1] != entries):
            self._history.append((now_s, entries))
        self.mounted = {
            pod: files
            for number, pod in enumerate(sorted(pods))
            if (files := self._seen(now_s, (number + 1) * KUBELET_S / len(pods))) is not None
        }
        if not spec.tls.bus:
            return
        for pod, files in self.mounted.items():
            for other, others in self.mounted.items():
                if not trusts(files, others):
                    raise InvariantError(f"{pod} does not trust the certificate of {other}")

    def _seen(self, now_s: float, lag_s: float) -> TlsFiles | None:
        old = [entries for at_s, entries in self._history if at_s <= now_s - lag_s]
        entries = (old or [entries for _, entries in self._history[:1]])[-1:]
        return _read(tuple(sorted(entries[0].items()))) if entries else None

    def observed(self, spec: Spec, now_s: float) -> dict[str, Any]:
        """Return what the operator observes."""
        entries = self.secret(spec) if spec.tls.enabled else None
        live = self._api.get("Secret", names.authority_secret(spec.name))
        authorities = None
        if live is not None:
            annotations = live["metadata"]["annotations"]
            changed_at = annotations[names.ROTATED_AT]
            authorities = read_authorities(
                _decoded(live), int(annotations[names.ROTATION]), changed_at, now_s - seconds(changed_at)
            )
        files = _read(tuple(sorted(entries.items()))) if entries is not None else None
        return {"tls": files, "authorities": authorities, "serves_certificates": self.serves_certificates}


def trusts(one: TlsFiles, other: TlsFiles) -> bool:
    """Return whether a broker with the first files accepts one with the other."""
    return _facts(other.pem.certificate, CERTIFICATE).signing_key in {
        _facts(pem, AUTHORITY).subject_key for pem in _certificates(one.trusted)
    }


def _certificates(text: str) -> list[str]:
    end = "-----END CERTIFICATE-----\n"
    return [part + end for part in text.split(end)[:-1]]


def _decoded(live: Json) -> dict[str, str]:
    return {name: base64.b64decode(value).decode() for name, value in (live.get("data") or {}).items()}
