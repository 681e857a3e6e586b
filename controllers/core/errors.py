"""The errors that people see: their message alone says what was wrong, where, and what to do."""


class SpeconError(Exception):
    """Something that its reader can put right; the message needs no traceback beside it."""


class SearchError(SpeconError):
    """A search cannot be read, or finds no hyperparameters for a trial."""


class SearchPending(SearchError):  # noqa: N818 - nothing is wrong
    """A search is still looking; ask again at a later tick."""


class MissingObjectiveError(SpeconError):
    """The trials of a sweep that have ended never logged its objective: the others were not started."""


class SweepInterrupted(SpeconError):  # noqa: N818 - an interruption is asked for, no mistake
    """A sweep was stopped by its owner; the same command goes on where it stopped."""
