"""Fuzzing that is guided by coverage: Atheris keeps the inputs that reach new code, and changes those.

It sees the branches of interpreted code only, and instruments modules while they are imported; so this is a program of
its own. An input that fails is written to the corpus as `failed-…`; the next run with that corpus tries it again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

import atheris

with atheris.instrument_imports(include=["disqued"]):
    from disqued.build import COMPILED
    from fuzz.ports import TARGETS

MAX_INPUT_BYTES: Final = 4096


def main() -> None:
    """Fuzz one target for some time. The exit status is not 0 if an input fails."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.guided", description="Fuzzing that is guided by coverage.")
    parser.add_argument("name", choices=TARGETS, help="what to fuzz")
    parser.add_argument("--seconds", type=int, default=60, help="how long (default: %(default)s)")
    parser.add_argument("--corpus", type=Path, default=Path("build/fuzz"), help="where inputs are kept")
    options = parser.parse_args()
    if COMPILED:
        parser.error("it sees no branches of the compiled build: run it without build/compiled in PYTHONPATH")
    target = TARGETS[options.name](1)
    corpus = options.corpus / options.name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, sample in enumerate(target.samples):
        (corpus / f"sample-{number}").write_bytes(sample[:MAX_INPUT_BYTES])
    limits = (f"-max_total_time={options.seconds}", f"-max_len={MAX_INPUT_BYTES}")
    quiet = ("-verbosity=0", "-print_final_stats=1")
    atheris.Setup([sys.argv[0], str(corpus), f"-artifact_prefix={corpus}/failed-", *limits, *quiet], target.take)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
