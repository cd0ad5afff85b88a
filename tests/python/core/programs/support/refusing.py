"""What programs that check refusals share."""

import weft


def refused(needle, function, *args, error=weft.Error, **kwargs):
    """Expects function(*args, **kwargs) to raise `error` with `needle` in its text."""
    try:
        function(*args, **kwargs)
    except error as raised:
        assert needle in str(raised), f"{needle!r} is not in {raised}"
        return True
    raise AssertionError(f"{function} was not refused")
