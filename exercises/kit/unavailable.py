"""The error for what has to be installed or fetched first."""


class Unavailable(OSError):
    """A checkpoint or a data set that is not on this machine.  The message says how to get it."""
