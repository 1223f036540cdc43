"""Write the generated pages: `python -m docs.generate`."""
# ruff: noqa: T201  (a script that prints the pages it wrote)

from __future__ import annotations

from docs.generate.pages import DOCS, PAGES


def main() -> None:
    """Write the pages that are outdated."""
    for name, page in PAGES.items():
        path = DOCS / name
        text = page()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"written: docs/{name}")


if __name__ == "__main__":
    main()
