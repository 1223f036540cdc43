"""What `plan` decides about the children beside what the spec says: all that `resources.desired` is told.

`resources.desired(spec, wanted)` gives the manifests of all children, `resources.differs(desired, live)` says whether
one has to be applied, and which field says so; `resources.settings(spec)` which directives CONFIG SET has to make true.
"""

from __future__ import annotations

from dataclasses import dataclass

from disque_operator.apivalues import Json
from disque_operator.observed import Passwords


@dataclass(frozen=True)
class Wanted:
    """Numbers and secrets that the children get."""

    replicas: int
    """Of the StatefulSet. Not what the spec says while a pod is drained, or while the cluster hibernates."""
    passwords: Passwords | None = None
    """For the Secret `names.auth_secret`, with `rotated_at` as its annotation; None: there never was one. The file in
    it, `disque.conf`, is empty while passwords are switched off, so that switching them changes no pod template."""
    asleep: int = 0
    """How many members hibernate, for the annotation names.ASLEEP of the StatefulSet; 0 for no annotation."""
    claim_templates: tuple[Json, ...] = ()
    """`spec.volumeClaimTemplates` of the live StatefulSet, which can not be changed: claims that are to be larger are
    expanded themselves. Empty for a StatefulSet that is not there yet."""
    operator_namespace: str = ""
    """Observed.operator_namespace."""
