"""What can be wrong with how a script uses the hooks.

HookError
├── BadEnvironmentError   a variable or an argument of ``trial()`` makes no sense
├── StateMismatchError    the script tracks other states than its checkpoint holds
├── SecondTrialError      an attempt trains its trial a second time, or in two processes
└── GangError             several workers cannot train what the script asks of them as one would
"""


class HookError(Exception):
    """A script and its hooks do not fit together."""


class BadEnvironmentError(HookError, ValueError):
    """A ``SPECON_*`` variable or an argument of ``trial()`` has a value that cannot be used."""


class StateMismatchError(HookError):
    """The checkpoint to go on from holds other states than the script tracks."""


class SecondTrialError(HookError):
    """An attempt has its one ``with trial()`` already, in this process or in another one."""


class GangError(HookError):
    """The script's workers have not joined, or its model or loss cannot be split over several of them."""
