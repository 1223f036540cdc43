"""Write the files generated from the alerts: `python -m dashboards.alerts`, or with `--check` list outdated ones."""
# ruff: noqa: T201  (a script that prints the files it wrote)

from __future__ import annotations

import sys

from dashboards.alerts.files import ROOT, generated


def main(arguments: list[str]) -> int:
    """Write or list the outdated files."""
    old = [(path, text) for path, text in generated() if not path.exists() or path.read_text("utf-8") != text]
    check = "--check" in arguments
    for path, text in old:
        if not check:
            path.write_text(text, "utf-8")
        print(f"{'outdated' if check else 'written'}: {path.relative_to(ROOT)}")
    if check and old:
        print("run: python -m dashboards.alerts")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
