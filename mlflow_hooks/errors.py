"""What can be wrong with how a script uses the hooks.

HookError
├── BadEnvironmentError   a variable or an argument of ``trial()`` makes no sense
└── StateMismatchError    the script tracks other states than its checkpoint holds
"""


class HookError(Exception):
    """A script and its hooks do not fit together."""


class BadEnvironmentError(HookError, ValueError):
    """A ``SPECON_*`` variable or an argument of ``trial()`` has a value that cannot be used."""


class StateMismatchError(HookError):
    """The checkpoint to go on from holds other states than the script tracks."""
