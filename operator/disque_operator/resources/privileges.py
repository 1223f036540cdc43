"""What `spec.podTemplate` must not ask for: more than the Pod Security Standard `baseline`, an account, or a node.

The operator creates the StatefulSet with its own permissions. Without these limits, a user who may write a
DisqueCluster could use every ServiceAccount of the namespace, and reach the Kubernetes nodes. The operator's option
`pod-templates` lifts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from disque_operator.apivalues import Json
from disque_operator.spec import Spec

_UNSET: Final = (None,)
_OFF: Final = (None, False)
_ACCOUNT: Final = "pods have an account without permissions"
_NODE: Final = "it bypasses the scheduler; set spec.nodeSelector or spec.affinity"
_HOST: Final = "it gives access to the Kubernetes node"
_KERNEL: Final = "it weakens the isolation of the container"
_CAPABILITIES: Final = (
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
    *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
)
_SYSCTLS: Final = (
    *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start"),
    *("net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports"),
    *("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl"),
    *("net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
)
_PROFILES: Final = (None, "RuntimeDefault", "Localhost")
_SELINUX: Final = (None, "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")

_SECURITY: Final[tuple[tuple[str, tuple[object, ...], str], ...]] = (
    ("seccompProfile.type", _PROFILES, _KERNEL),
    ("appArmorProfile.type", _PROFILES, _KERNEL),
    ("seLinuxOptions.type", _SELINUX, _KERNEL),
    ("seLinuxOptions.user", (None, ""), _KERNEL),
    ("seLinuxOptions.role", (None, ""), _KERNEL),
    ("windowsOptions.hostProcess", _OFF, _HOST),
)
"""Fields of the security context of a pod and of a container."""
_CONTAINER: Final[tuple[tuple[str, tuple[object, ...], str], ...]] = (
    ("ports[].hostPort", (None, 0), _HOST),
    ("securityContext.privileged", _OFF, _HOST),
    ("securityContext.capabilities.add[]", _CAPABILITIES, _KERNEL),
    ("securityContext.procMount", (None, "Default"), _KERNEL),
    *((f"securityContext.{path}", values, why) for path, values, why in _SECURITY),
)
_POD: Final[tuple[tuple[str, tuple[object, ...], str], ...]] = (
    ("serviceAccountName", _UNSET, _ACCOUNT),
    ("serviceAccount", _UNSET, _ACCOUNT),
    ("nodeName", _UNSET, _NODE),
    ("hostNetwork", _OFF, _HOST),
    ("hostPID", _OFF, _HOST),
    ("hostIPC", _OFF, _HOST),
    ("volumes[].hostPath", _UNSET, _HOST),
    ("securityContext.sysctls[].name", _SYSCTLS, _KERNEL),
    *((f"securityContext.{path}", values, why) for path, values, why in _SECURITY),
    *(
        (f"{containers}[].{path}", values, why)
        for containers in ("containers", "initContainers", "ephemeralContainers")
        for path, values, why in _CONTAINER
    ),
)
"""Fields of a pod with all values that are allowed, and why others are not. `[]` stands for each entry of a list."""


def privileges(spec: Spec) -> Iterator[tuple[str, str]]:
    """Yield the fields of `spec.podTemplate` that ask for more than allowed, with the reason."""
    pod: Json = spec.pod_template.get("spec") or {}
    for path, values, why in _POD:
        for found, value in _values(pod, path.split("."), "spec"):
            if value not in values:
                yield found, why


def _values(tree: Any, steps: list[str], at: str) -> Iterator[tuple[str, Any]]:
    """Yield what a path leads to, with the names of list entries filled in."""
    if not steps:
        yield at, tree
        return
    if not isinstance(tree, dict):
        return
    field = steps[0].removesuffix("[]")
    below = tree.get(field)
    if field == steps[0]:
        yield from _values(below, steps[1:], f"{at}.{field}")
        return
    for number, entry in enumerate(below if isinstance(below, list) else ()):
        name = entry.get("name", number) if isinstance(entry, dict) else entry
        yield from _values(entry, steps[1:], f"{at}.{field}[{name}]")
