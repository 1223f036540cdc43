"""What a release must know about the files of other releases.

Whoever adds a kind of record to the append-only file, or changes one, so that an older release would take it for
damage, adds a row here. Files of the new format then begin with a record that says so, and older releases leave them
alone.
"""

from __future__ import annotations

from typing import Final

FILE_FORMATS: Final[dict[tuple[int, int], int]] = {(0, 1): 1}
"""The newest format of files that a release reads, by the first release (major, minor) that reads it."""
FILE_FORMAT: Final = max(FILE_FORMATS.values())
"""The newest format that this release reads."""
