"""Build the files of a release: `make dist` writes them to `dist`, with their checksums.

| file | purpose |
|---|---|
| `disqued-VERSION.tar.gz`, `disqued-VERSION-py3-none-any.whl` | the Python package: `pip install disqued[server]` |
| `disque-operator-VERSION.tgz`, `disque-cluster-VERSION.tgz` | the charts; written if Helm is installed |
| `disque-operator-VERSION.yaml` | the resource definitions and the operator, for `kubectl apply --server-side` |
| `disque-operator-bundle-VERSION.tar.gz` | the bundle for the Operator Lifecycle Manager (`olm.py`) |
| `SHA256SUMS` | checksums of all of them, for `sha256sum --check` |

Images are built by `make image`, and the plugin for krew by `krew.py`. `.github/workflows/release.yaml` publishes all.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from release import archive, olm
from release.version import ROOT, current, outdated

CHARTS: Final = ("disque-operator", "disque-cluster")
MANIFESTS: Final = ("manifests/crd", "manifests/operator")
SUMS: Final = "SHA256SUMS"


def build(folder: Path) -> list[Path]:
    """Build all files of the release in an empty folder, and return them.

    Raises:
        SystemExit: The files of the project name different versions.
    """
    if wrong := outdated():
        raise SystemExit(f"not version {current()}: {', '.join(wrong)}; run python -m release.version {current()}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for target in ("sdist", "wheel"):
        _run(sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder))
    if helm := shutil.which("helm"):
        for chart in CHARTS:
            _run(helm, "package", str(ROOT / "charts" / chart), "--destination", str(folder))
    else:
        print("Helm is not installed: the charts are left out", file=sys.stderr)
    (folder / f"disque-operator-{current()}.yaml").write_text(_manifests(), encoding="utf-8")
    bundle = {path: text.encode() for path, text in olm.files().items()}
    archive.write(folder / f"disque-operator-bundle-{current()}.tar.gz", bundle)
    files = sorted(folder.iterdir())
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / SUMS).write_text("".join(sums), encoding="utf-8")
    return [*files, folder / SUMS]


def _manifests() -> str:
    """Return the manifests that `kubectl apply` needs, as one file. The namespace comes before what is in it."""
    paths = [path for folder in MANIFESTS for path in sorted((ROOT / folder).glob("*.yaml"))]
    paths.sort(key=lambda path: path.name != "namespace.yaml")
    texts = [path.read_text(encoding="utf-8") for path in paths]
    return "".join(text if text.startswith("---\n") else f"---\n{text}" for text in texts)


def _run(*words: str) -> None:
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}:\n{done.stdout}{done.stderr}")


def main() -> None:
    """Run the command."""
    for path in build(ROOT / "dist"):
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
