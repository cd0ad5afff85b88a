"""The list of hosts of `weft run --hosts`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.launch.command import UsageError
from weft.launch.hosts.host_list import HostSlots, parse_hosts

NAMES = st.lists(st.from_regex(r"[a-z][a-z0-9.-]{0,8}", fullmatch=True), min_size=1, max_size=6, unique=True)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a:4,b:4", [("a", 4), ("b", 4)]),
        ("a:6, b:2", [("a", 6), ("b", 2)]),
        ("a,b", [("a", 4), ("b", 4)]),
        ("a,b,c", [("a", 2), ("b", 3), ("c", 3)]),
        ("one.example.org:8", [("one.example.org", 8)]),
        ("fe80::1,b", [("fe80::1", 4), ("b", 4)]),
        ("[fe80::1]:2,b:6", [("fe80::1", 2), ("b", 6)]),
        ("user@a:8", [("user@a", 8)]),
    ],
)
def test_hosts_are_read(text: str, hosts: list[tuple[str, int]]) -> None:
    assert parse_hosts(text, 8) == [HostSlots(name, slots) for name, slots in hosts]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "'' is no host"),
        ("a,,b", "'' is no host"),
        ("a b", "'a b' is no host"),
        ("-oProxyCommand=x", "'-oProxyCommand=x' is no host"),
        ("a:0", "'0' is no number of PEs"),
        ("a:x", "'x' is no number of PEs"),
        ("a:4,b", "give all hosts a number of PEs"),
        ("a:4,a:4", "a is there twice"),
        ("localhost:4,127.0.0.1:4", "localhost and 127.0.0.1 are both this host"),
        ("a:4,b:2", "there is room for 6 PEs, and -n says 8"),
    ],
)
def test_what_is_no_list_of_hosts_is_refused(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        parse_hosts(text, 8)


@given(names=NAMES, num_pes=st.integers(1, 100))
def test_equal_shares_have_room_for_all(names: list[str], num_pes: int) -> None:
    hosts = parse_hosts(",".join(names), num_pes)
    assert [host.name for host in hosts] == names
    assert sum(host.slots for host in hosts) == num_pes
    assert max(host.slots for host in hosts) - min(host.slots for host in hosts) <= 1
