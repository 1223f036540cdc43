"""Imports every module of some packages, to check that an image contains all dependencies.

python imports.py disqued disque_operator -disqued.kombu

A package after a hyphen is left out, with all that it contains.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import walk_packages


def main() -> None:
    """Import all modules of the packages on the command line, except `__main__` modules, which would run."""
    left_out = tuple(f"{word[1:]}." for word in sys.argv[1:] if word.startswith("-"))
    for package in [import_module(word) for word in sys.argv[1:] if not word.startswith("-")]:
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if not f"{module.name}.".startswith(left_out) and not module.name.endswith(".__main__"):
                import_module(module.name)


if __name__ == "__main__":
    main()
