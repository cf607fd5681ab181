"""The one error type for input a user can mend."""


class InputError(ValueError):
    """Bad input. The message names the file, line, row or key at fault and says what to do next."""
