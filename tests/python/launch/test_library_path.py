"""The LD_LIBRARY_PATH of virtual ranks."""

from __future__ import annotations

import pytest

from weft.launch.virtual_ranks import with_plain_library_path


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (None, None),
        ("", None),
        (":", None),
        ("/a", "/a"),
        ("/a:/b;/c", "/a:/b:/c"),
        ("/b:/a:/b:/a", "/b:/a"),  # the first of two is the one that the loader uses
        (":/a::/b:", "/a:/b"),
        (".:/a", ".:/a"),
    ],
)
def test_repeated_and_empty_entries_are_left_out(given: str | None, plain: str | None) -> None:
    environment = {"HOME": "/home/user"} | ({} if given is None else {"LD_LIBRARY_PATH": given})
    before = dict(environment)
    result = with_plain_library_path(environment)
    assert result.pop("LD_LIBRARY_PATH", None) == plain
    assert result == {"HOME": "/home/user"}
    assert environment == before
