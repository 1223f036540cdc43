"""A fake `kubectl`: a file of objects instead of an API server, and port forwards to real brokers instead of pods.

For tests of the plugin. A test reads and changes the file through `FakeKubernetes`. Run as a program,
this module is the `kubectl` that the plugin finds. It takes the arguments of the real one and rejects what it does not
implement, so the plugin cannot use anything untested.
"""

from __future__ import annotations

import copy
import json
import os
import socket
import stat
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

Json = dict[str, Any]

STATE: Final = "FAKE_KUBERNETES"
CLUSTERS: Final = "disqueclusters.disque.dev"
_WITH_VALUE: Final = ("--namespace", "--context", "--kubeconfig", "--output", "--selector", "--type", "--patch",
                      "--sort-by", "--address", "--pod-running-timeout", "--container")  # fmt: skip


class FakeKubernetes:
    """The state of the fake: set by a test, read and changed by runs of the fake `kubectl`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._path = directory / "state.json"
        self.change(objects={}, ports={}, logs={}, failing_requests=0, pending_changes=[], forbidden=[])
        program = directory / "kubectl"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -S {Path(__file__)} "$@"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    @property
    def environment(self) -> dict[str, str]:
        """The plugin's environment variables: this `kubectl` first in PATH, and the path of the state."""
        return {"PATH": f"{self.directory}:{os.environ['PATH']}", STATE: str(self._path)}

    @property
    def state(self) -> Json:
        """The whole state."""
        found: Json = json.loads(self._path.read_text())
        return found

    def change(self, **values: Any) -> None:
        """Set parts of the state."""
        state = self.state if self._path.exists() else {}
        _write(self._path, state | values)

    def add(self, kind: str, *objects: Json) -> None:
        """Add objects of a kind, as named in `kubectl get KIND`; objects of the same name are replaced."""
        state = self.state
        there = state["objects"].setdefault(kind, {})
        there |= {each["metadata"]["name"]: each for each in objects}
        _write(self._path, state)

    def get(self, kind: str, name: str) -> Json:
        """Return the current state of an object."""
        found: Json = self.state["objects"][kind][name]
        return found

    def calls(self) -> list[list[str]]:
        """Return the arguments of all runs so far."""
        path = self.directory / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]


def _write(path: Path, state: Json) -> None:
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps(state))
    fresh.replace(path)


def merged(value: Any, patch: Any) -> Any:
    """Return the value with a JSON merge patch applied."""
    if not isinstance(patch, dict):
        return patch
    kept = dict(value) if isinstance(value, dict) else {}
    for name, each in patch.items():
        if each is None:
            kept.pop(name, None)
        else:
            kept[name] = merged(kept.get(name), each)
    return kept


class Run:
    """One run of the fake `kubectl`."""

    def __init__(self, words: Sequence[str]) -> None:
        self.path = Path(os.environ[STATE])
        self.state: Json = json.loads(self.path.read_text())
        self.words: list[str] = []
        self.flags: dict[str, str] = {}
        left = iter(words)
        for word in left:
            if word in _WITH_VALUE:
                self.flags[word] = next(left)
            elif word.startswith("--"):
                name, _, value = word.partition("=")
                self.flags[name] = value
            else:
                self.words.append(word)
        with (self.path.parent / "calls.jsonl").open("a") as calls:
            calls.write(json.dumps(list(words)) + "\n")

    def run(self) -> None:
        """Run the command that the first argument names."""
        if self.state["failing_requests"]:
            self.save(failing_requests=self.state["failing_requests"] - 1)
            fail("The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or port?")
        verb, *rest = self.words
        verbs: dict[str, Callable[..., None]] = {
            "get": self.get,
            "patch": self.patch,
            "annotate": self.annotate,
            "port-forward": self.forward,
            "logs": self.logs,
            "version": self.version,
        }
        if verb not in verbs:
            fail(f'error: unknown command "{verb}" for "kubectl"')
        verbs[verb](*rest)

    def save(self, **values: Any) -> None:
        """Write the state with these changes."""
        _write(self.path, self.state | values)

    def found(self, kind: str, name: str) -> Json:
        """Return an object, or fail with the real `kubectl`'s error."""
        kind = {"pod": "pods"}.get(kind, kind)
        if kind in self.state["forbidden"]:
            fail(
                f'Error from server (Forbidden): {kind} "{name}" is forbidden: User "dev" cannot get resource "{kind}"'
            )
        there: dict[str, Json] = self.state["objects"].get(kind, {})
        if name not in there:
            fail(f'Error from server (NotFound): {kind} "{name}" not found')
        return there[name]

    def get(self, kind: str, name: str | None = None) -> None:
        """`get KIND [NAME]`; each GET of a cluster applies the next of the operator's changes."""
        if kind not in self.state["objects"] and kind == CLUSTERS:
            fail('error: the server doesn\'t have a resource type "disqueclusters"')
        if name is None:
            every = self.state["objects"].get({"pod": "pods"}.get(kind, kind), {}).values()
            show({"kind": "List", "items": [each for each in every if self.selected(each)]})
            return
        found = self.found(kind, name)
        if kind == CLUSTERS and self.state["pending_changes"]:
            found = self.step(found)
        show(found)

    def step(self, cluster: Json) -> Json:
        """Apply the operator's next change: patches of objects by kind and name."""
        state = copy.deepcopy(self.state)
        for path, patch in state["pending_changes"].pop(0).items():
            kind, name = path.split("/")
            state["objects"][kind][name] = merged(state["objects"][kind].get(name, {}), patch)
            if patch is None:
                del state["objects"][kind][name]
        _write(self.path, state)
        found: Json = state["objects"][CLUSTERS][cluster["metadata"]["name"]]
        return found

    def selected(self, found: Json) -> bool:
        """Return whether an object has the labels of `--selector`."""
        wanted = (pair.split("=") for pair in self.flags.get("--selector", "").split(",") if pair)
        labels = found["metadata"].get("labels") or {}
        return all(labels.get(name) == value for name, value in wanted)

    def patch(self, kind: str, name: str) -> None:
        """`patch KIND NAME --type merge --patch JSON`."""
        assert self.flags["--type"] == "merge"
        former = self.found(kind, name)
        changed = merged(former, json.loads(self.flags["--patch"]))
        if changed["spec"] != former["spec"]:
            changed["metadata"]["generation"] += 1
        self.state["objects"][kind][name] = changed
        self.save()
        show(changed)

    def annotate(self, kind: str, name: str, setting: str) -> None:
        """`annotate --overwrite KIND NAME KEY=VALUE` or `KEY-`."""
        assert "--overwrite" in self.flags
        annotations = self.found(kind, name)["metadata"].setdefault("annotations", {})
        key, _, value = setting.partition("=")
        if setting.endswith("-"):
            annotations.pop(setting[:-1], None)
        else:
            annotations[key] = value
        self.save()
        sys.stdout.write(f"{kind}/{name} annotated\n")

    def forward(self, target: str, ports: str) -> None:
        """`port-forward pod/NAME :PORT`, to the real port that the test set for the pod."""
        assert ports in {":7711", ":7712"}
        pod = target.removeprefix("pod/")
        if pod not in self.state["ports"]:
            fail("error: unable to forward port because pod is not running. Current status=Pending")
        with socket.create_server(("127.0.0.1", 0)) as listener:
            local = listener.getsockname()[1]
            sys.stdout.write(f"Forwarding from 127.0.0.1:{local} -> 7711\n")
            sys.stdout.flush()
            while True:
                near, _ = listener.accept()
                sys.stdout.write(f"Handling connection for {local}\n")
                sys.stdout.flush()
                far = socket.create_connection(("127.0.0.1", self.state["ports"][pod]))
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=pipe, args=(one, other), daemon=True).start()

    def logs(self, pod: str) -> None:
        """`logs POD --timestamps`; with `--follow` it ends after the existing lines, as when a pod ends."""
        lines: list[str] = self.state["logs"].get(pod, [])
        if "--previous" in self.flags:
            lines = self.state["logs"].get(f"{pod} previous", [])
        since = self.flags.get("--since-time", "")
        lines = [line for line in lines if line >= since]
        tail = int(self.flags.get("--tail", "-1"))
        for line in lines if tail < 0 else lines[-tail:]:
            sys.stdout.write(line + "\n")

    def version(self) -> None:
        """`version`."""
        sys.stdout.write("Client Version: v0\nServer Version: v0\n")


def pipe(one: socket.socket, other: socket.socket) -> None:
    """Copy bytes from one socket to the other until the first ends."""
    while data := one.recv(1 << 16):
        other.sendall(data)
    other.shutdown(socket.SHUT_WR)


def show(found: Json) -> None:
    """Print an object as JSON."""
    json.dump(found, sys.stdout)


def fail(message: str) -> NoReturn:
    """Print an error and exit as `kubectl` does."""
    sys.stderr.write(message + "\n")
    sys.exit(1)


if __name__ == "__main__":
    Run(sys.argv[1:]).run()
