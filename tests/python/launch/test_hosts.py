"""Which host a PE gets. No process is started."""

from __future__ import annotations

import pytest

from weft.launch.command import UsageError
from weft.launch.hosts.host_list import HostSlots
from weft.launch.hosts.hosts import Hosts
from weft.launch.hosts.remote_host import RemoteHost
from weft.launch.processes import Pe


def hosts_of(*slots: int, num_pes: int) -> Hosts:
    return Hosts([HostSlots(f"host{i}", count) for i, count in enumerate(slots)], num_pes)


def put_pe(hosts: Hosts, number: int, host: RemoteHost | None) -> str:
    """The PE runs on that host; returns its name."""
    pe = Pe(number, 0, is_child=False)
    if host is None:
        hosts.started_here(pe)
        return "here"
    host.pes.append(pe)
    return host.name


def place(hosts: Hosts, number: int) -> str:
    return put_pe(hosts, number, hosts.place())


def test_hosts_are_filled_in_their_order_and_spares_come_last() -> None:
    hosts = hosts_of(2, 1, 2, num_pes=3)
    assert [place(hosts, pe) for pe in range(5)] == ["host0", "host0", "host1", "host2", "host2"]
    # All are full: the one with the least too many.
    assert place(hosts, 5) == "host0"
    assert place(hosts, 6) == "host1"


def test_the_own_host_has_its_place_in_the_order() -> None:
    hosts = Hosts([HostSlots("host0", 1), HostSlots("localhost", 2)], 3)
    assert [place(hosts, pe) for pe in range(3)] == ["host0", "here", "here"]
    assert (hosts.num_here, hosts.first_here) == (2, 1)


def test_hosts_that_are_lost_or_unfit_get_none() -> None:
    hosts = hosts_of(1, 1, 1, num_pes=3)
    first, second, third = hosts.remote
    first.loss = "it is gone"
    second.is_unfit = True
    assert [place(hosts, pe) for pe in range(2)] == ["host2", "host2"]
    third.loss = "it is gone"
    with pytest.raises(UsageError, match="no host is left"):
        hosts.place()
