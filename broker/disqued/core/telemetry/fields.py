"""The fields of a section of INFO: names and values, in the order in which INFO shows them."""

from __future__ import annotations

from typing import TypeAlias

Fields: TypeAlias = list[tuple[str, object]]
