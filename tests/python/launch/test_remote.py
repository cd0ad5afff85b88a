"""Which host a PE gets, and when a host is lost by its silence. No process is started."""

from __future__ import annotations

import selectors
from typing import Any

import pytest

from weft.launch.command import UsageError
from weft.launch.hosts.host_list import HostSlots
from weft.launch.hosts.link import GREETING, PING_S, SILENCE_S
from weft.launch.hosts.remote import Hosts, RemoteHost, RemotePe
from weft.launch.processes import Pe


class Owner:
    """What the job would hear."""

    def __init__(self) -> None:
        self.lost: list[int] = []

    def host_lost(self, pes: list[Pe]) -> None:
        self.lost += [pe.number for pe in pes]

    def cannot_start(self, sentence: str, pes: list[Pe]) -> None:
        raise AssertionError(sentence)


class SilentProcess:
    """A remote shell that runs."""

    pid = 1
    returncode = None

    def kill(self) -> None:
        pass


class ClosedLink:
    def fileno(self) -> int:
        return 0

    def send(self, data: bytes, flags: int) -> int:
        return len(data)

    def close(self) -> None:
        pass


def hosts_of(*slots: int, num_pes: int) -> tuple[Hosts, Owner, list[RemoteHost]]:
    hosts = Hosts([HostSlots(f"host{i}", count) for i, count in enumerate(slots)], num_pes)
    owner = Owner()
    nothing: Any = None
    hosts.begin(selectors.DefaultSelector(), nothing, owner, {}, lambda: None)  # type: ignore[arg-type]
    remote = hosts._hosts()
    for host in remote:
        process: Any = SilentProcess()
        link: Any = ClosedLink()
        host._process, host._link = process, link
        host._watch = lambda: None  # type: ignore[method-assign]
        list(host._decoder.feed(GREETING))
    return hosts, owner, remote


def put_pe(hosts: Hosts, number: int) -> RemoteHost:
    host = hosts.place()
    assert host is not None
    host.pes.append(RemotePe(host, number, number, 0, host.num_running))
    return host


def test_hosts_are_filled_in_their_order_and_spares_come_last() -> None:
    hosts, _, remote = hosts_of(2, 1, 2, num_pes=3)
    assert [put_pe(hosts, pe).name for pe in range(5)] == ["host0", "host0", "host1", "host2", "host2"]
    # All are full: the one with the least too many.
    assert put_pe(hosts, 5).name == "host0"
    assert put_pe(hosts, 6).name == "host1"
    remote[1].is_unfit = True
    remote[2].loss = "it is gone"
    assert put_pe(hosts, 7).name == "host0"
    remote[0].loss = "it is gone"
    with pytest.raises(UsageError, match="no host is left"):
        hosts.place()


def test_agents_know_how_many_pes_their_host_begins_with() -> None:
    hosts, _, remote = hosts_of(8, 2, 4, num_pes=5)
    assert [hosts.job_of(host)["num_pes"] for host in remote] == [5, 2, 4]


def test_a_silent_host_is_lost_and_others_are_not() -> None:
    hosts, owner, (silent, heard) = hosts_of(1, 1, num_pes=2)
    put_pe(hosts, 0)
    put_pe(hosts, 1)
    now = hosts.deadline
    assert now is not None
    silent._heard_at = now
    for _ in range(int(SILENCE_S / PING_S) + 2):
        heard._heard_at = now
        hosts.tick(now)
        now += PING_S
    assert owner.lost == [0]
    assert silent.loss is not None and heard.loss is None


def test_a_launcher_that_was_stopped_takes_no_host_for_lost() -> None:
    hosts, owner, (host,) = hosts_of(1, num_pes=1)
    put_pe(hosts, 0)
    now = hosts.deadline
    assert now is not None
    host._heard_at = now
    hosts.tick(now)
    hosts.tick(now + 10 * SILENCE_S)
    assert owner.lost == []
