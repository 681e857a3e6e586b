"""How much is read of what programs write: the one home of these bounds, for the hooks and for those who follow trials.

A program may print without end, keep a line or a file that never ends, or put a pipe where a file should be. A
reader does so in looks, and each look is bounded in bytes, in values and in time.
"""

from typing import Final

LONGEST_LINE: Final = 2**16
"""Bytes of a line that are read: the last ones of what is printed, none of what is journalled."""
MOST_VALUES: Final = 100
"""Values of a line that are read."""
MOST_SMALL: Final = 2**20
"""Bytes of a small file, which is read whole or not at all: an identity, a result, a note."""
MOST_DEPTH: Final = 100
"""Levels of objects and lists within each other in what others write: a fraction of what any Python can take."""

LOOK_S: Final = 0.3
"""Seconds that one look at all trials of a run takes at most; who is not reached comes first in the next look."""
PIECE: Final = 2**14
"""Bytes of a log between two looks at the clock: even what is dearest to read takes a tenth of a second."""
JOURNAL_PIECE: Final = 2**18
"""The same of a journal, whose lines are cheap."""
MOST_OF_LOG: Final = 2**20
"""Bytes of a log that are read to tell a person of what is in it: half of them its first, half its newest."""
MOST_OF_JOURNAL: Final = 2**26
"""Bytes of a journal that are read to tell a person of what is in it."""
MOST_BEHIND: Final = 2**26
"""Bytes that a look leaves for later looks; of more, only the newest count."""
NEWEST: Final = 2**16
"""Bytes that are read of a file whose reader has fallen behind: the newest ones."""
READ_S: Final = 3.0
"""Seconds that reading one trial's log may take at once: about 80,000 values, or some 200 MB of other lines."""
READ_PART: Final = 0.02
"""The same in the long run, as a part of the time that passes."""
MOST_POINTS: Final = 20_000
"""Values of a trial's objective that are kept of its log: of more, every second one of the earlier is left out."""
