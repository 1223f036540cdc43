"""Write the dashboards: `python -m dashboards`. With `--check`, only list outdated files."""
# ruff: noqa: T201  (a script that prints the files it wrote)

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from dashboards.all import BOARDS
from dashboards.build import json_of

FOLDER: Final = Path(__file__).parent / "json"


def main(arguments: list[str]) -> int:
    """Write or list the outdated files."""
    wanted = {FOLDER / board.file: json_of(board) for board in BOARDS}
    old = [path for path, text in wanted.items() if not path.exists() or path.read_text("utf-8") != text]
    gone = [path for path in FOLDER.glob("*.json") if path not in wanted]
    check = "--check" in arguments
    for path in old + gone:
        if not check and path in wanted:
            path.parent.mkdir(exist_ok=True)
            path.write_text(wanted[path], "utf-8")
        elif not check:
            path.unlink()
        print(f"{'outdated' if check else 'written' if path in wanted else 'removed'}: {path.name}")
    if check and old + gone:
        print("run: python -m dashboards")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
