"""A cluster of test hosts on this machine: namespaces that share the kernel and the file system only.

Each host has a network device, host name, processes, System V IPC, /dev/shm, /run and TMPDIR of its own.
The devices of a network are joined by a bridge, without a way to the outside. Everything runs below one
process, the keeper, which is process 1 of a PID namespace: when it ends, the kernel kills all others. It ends
when its standard input does, so also if the test process is killed, and after MAX_LIFE_S in any case.

    with Cluster(2) as cluster:
        node_a, node_b = cluster.hosts
        print(node_a.run(["ping", "-c", "1", node_b.name]).stdout)
        cluster.cut(node_b)
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from remote_shell import UNNOTICED

MAX_HOSTS = 8
MAX_LIFE_S = 1800
# A command of these tests that takes longer hangs.
HANG_S = 150.0
TOOLS = ("ip", "unshare", "nsenter", "mount")
# Where these tools are is not in everybody's PATH.
TOOL_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"
REMOTE_SHELL = Path(__file__).with_name("remote_shell.py")


@dataclasses.dataclass(frozen=True)
class Network:
    """Addresses of this machine's namespaces only: host i has number i + 1."""

    index: int
    ipv4: bool = True
    ipv6: bool = False
    #: One cable between two hosts, without a bridge: less work for the kernel. It cannot be cut.
    is_direct: bool = False

    @property
    def device(self) -> str:
        return f"eth{self.index}"

    @property
    def bridge(self) -> str:
        return f"br{self.index}"

    @property
    def prefix(self) -> str:
        return f"10.77.{self.index}.0/24"

    def addresses(self, host: int) -> list[str]:
        v4 = [f"10.77.{self.index}.{host + 1}"] if self.ipv4 else []
        v6 = [f"fd77:{self.index}::{host + 1}"] if self.ipv6 else []
        return v4 + v6


IPV4 = Network(0)
IPV6_ONLY = Network(0, ipv4=False, ipv6=True)


class Host:
    """One host. Commands run in it as its root, with this process's environment and folder."""

    def __init__(self, cluster: Cluster, index: int, name: str) -> None:
        self.cluster = cluster
        self.index = index
        self.name = name
        self.socket = cluster.folder / f"{name}.sock"
        self._init: subprocess.Popen[str] | None = None
        self._init_pid = 0

    @property
    def address(self) -> str:
        return self.cluster.networks[0].addresses(self.index)[0]

    @property
    def tmpdir(self) -> Path:
        """A path that is the same on all hosts, and a folder that is each host's own."""
        return self.cluster.folder / "local"

    def command(self, argv: Sequence[object]) -> list[str]:
        """The command line that runs `argv` on this host, for any function that starts processes."""
        return [sys.executable, str(REMOTE_SHELL), "run", str(self.socket), *map(str, argv)]

    def start(self, argv: Sequence[object], **options: Any) -> subprocess.Popen[str]:
        defaults: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
        }
        process = subprocess.Popen(self.command(argv), **{**defaults, **options})
        self.cluster.processes.append(process)
        return process

    def run(self, argv: Sequence[object], timeout_s: float = HANG_S, **options: Any) -> Completed:
        """Runs to the end. Raises TimeoutError, with the output so far, if that takes too long."""
        process = self.start(argv, **options)
        return finish(process, timeout_s)

    def check(self, argv: Sequence[object], **options: Any) -> str:
        """The standard output of a command that must succeed."""
        completed = self.run(argv, **options)
        if completed.exit_code != 0:
            raise RuntimeError(f"{list(map(str, argv))} on {self.name}: {completed}")
        return completed.stdout

    def pids(self, program: str) -> list[int]:
        """Of the processes of this host with that name, in the host's own numbers."""
        return [int(line) for line in self.run(["pgrep", "-x", program]).stdout.split()]

    def wait_for_the_end_of(self, program: str, timeout_s: float = HANG_S) -> None:
        """Polls on the host: a Python process for each look would keep a core busy."""
        none_left = f"pgrep -x {program} > /dev/null; test $? -eq 1"
        try:
            self.run(["sh", "-c", f"until {none_left}; do sleep 0.05; done"], timeout_s)
        except TimeoutError:
            raise TimeoutError(f"{program} has not ended on {self.name} in {timeout_s:.1f} s") from None

    def signal(self, pid: int, number: signal.Signals) -> None:
        self.check(["kill", f"-{int(number)}", pid])

    def kill(self, *, noticed: bool = True) -> None:
        """The whole host at once: SIGKILL to all its processes; its network device vanishes.

        `noticed`: the agents of launchers end, as ssh does if it notices; else they stay, as ssh does too.
        """
        if not noticed:
            (self.cluster.folder / UNNOTICED).touch()
            for network in range(len(self.cluster.networks)):  # the kernel would close the connections
                self.cluster.cut(self, network)
        assert self._init is not None
        os.kill(self._init_pid, signal.SIGKILL)
        self._init.wait(HANG_S)


@dataclasses.dataclass
class Completed:
    exit_code: int
    stdout: str
    stderr: str
    seconds: float  # from the call that waited for it


def finish(process: subprocess.Popen[str], timeout_s: float = HANG_S) -> Completed:
    begin = time.monotonic()
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()  # the host kills the program then
        try:
            stdout, stderr = process.communicate(timeout=5)
        except subprocess.TimeoutExpired:  # a process that has left the session holds the streams
            stdout = stderr = "unknown"
        raise TimeoutError(f"{process.args} did not end in {timeout_s} s:\n{stdout}\n{stderr}") from None
    return Completed(process.returncode, stdout, stderr, time.monotonic() - begin)


class Cluster:
    """A context manager; everything has ended when its body is left."""

    def __init__(
        self,
        num_hosts: int,
        *,
        networks: Sequence[Network] = (IPV4,),
        same_hostname: bool = False,
        overlay: Path | None = None,
    ) -> None:
        """`same_hostname`: all hosts say the same name of themselves; they still resolve by their own names.

        `overlay`: a folder whose files appear in /usr, on the hosts only.
        """
        assert 1 <= num_hosts <= MAX_HOSTS
        self.networks = list(networks)
        self.processes: list[subprocess.Popen[str]] = []
        self._same_hostname = same_hostname
        self._overlay = overlay
        self._keeper: subprocess.Popen[str] | None = None
        # Short, since a socket's path has at most 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="weft-hosts-"))
        self.hosts = [Host(self, i, f"node{chr(ord('A') + i)}") for i in range(num_hosts)]

    def __enter__(self) -> Cluster:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def agent(self) -> list[str]:
        """A program that a launcher calls as it would call ssh: with a host and a command."""
        return [sys.executable, str(REMOTE_SHELL), "agent", str(self.folder)]

    def cut(self, host: Host, network: int = 0) -> None:
        """Nothing passes between this host and the others; no device tells them."""
        self._ip("link", "set", port(host, self.networks[network]), "nomaster")

    def mend(self, host: Host, network: int = 0) -> None:
        self._ip("link", "set", port(host, self.networks[network]), "master", self.networks[network].bridge)

    def unplug(self, host: Host, network: int = 0) -> None:
        """As cut(), but the device of the host loses its carrier."""
        self._ip("link", "set", port(host, self.networks[network]), "down")

    def shape(self, host: Host, rate: str, burst: str, limit: str) -> None:
        """What goes to this host passes a token bucket with a small buffer, which drops what does not fit."""
        self._in_keeper(
            "tc", "qdisc", "replace", "dev", port(host, self.networks[0]), "root", "tbf",
            "rate", rate, "burst", burst, "limit", limit,
        )  # fmt: skip

    def dropped_packets(self, host: Host) -> int:
        """How many the bucket of shape() has dropped."""
        said = self._in_keeper("tc", "-s", "qdisc", "show", "dev", port(host, self.networks[0]))
        found = re.search(r"dropped (\d+)", said)
        assert found, said
        return int(found[1])

    def bytes_between_hosts(self, network: int = 0) -> dict[str, int]:
        """How many bytes each host has received over the network since it started, by its name."""
        found = {}
        for host in self.hosts:
            path = f"/sys/class/net/{self.networks[network].device}/statistics/rx_bytes"
            found[host.name] = int(host.check(["cat", path]))
        return found

    def close(self) -> None:
        """Ends all processes of all hosts. May be called several times."""
        if self._keeper is not None:
            assert self._keeper.stdin is not None
            self._keeper.stdin.close()  # the keeper ends, and so does its PID namespace
            try:
                self._keeper.wait(HANG_S / 6)
            except subprocess.TimeoutExpired:
                self._keeper.kill()  # unshare --kill-child kills the keeper
                self._keeper.wait()
            assert self._keeper.stdout is not None
            self._keeper.stdout.close()
            self._keeper = None
        for process in self.processes:
            process.kill()
            with contextlib.suppress(ValueError):  # its streams were closed
                process.communicate()
        self.processes.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self) -> None:
        hosts_file = ["127.0.0.1 localhost", "::1 localhost"]
        for network in self.networks:
            for host in self.hosts:
                hosts_file += [f"{address} {host.name}" for address in network.addresses(host.index)]
        (self.folder / "hosts").write_text("\n".join(hosts_file) + "\n")
        (self.folder / "local").mkdir()
        own_user = ["--user", "--map-root-user"] if os.getuid() != 0 else []
        self._keeper = subprocess.Popen(
            ["unshare", *own_user, "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
             "sh", "-c", f"echo up; exec timeout -s KILL {MAX_LIFE_S} cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PATH": TOOL_PATH},
        )  # fmt: skip
        assert self._keeper.stdout is not None
        if self._keeper.stdout.readline() != "up\n":
            raise RuntimeError("the namespaces cannot be made")
        self._ip("link", "set", "lo", "up")
        for host in self.hosts:
            self._begin_host(host)
        for network in self.networks:
            self._plug(network)
        for host in self.hosts:
            assert host._init is not None and host._init.stdin is not None
            host._init.stdin.write("plugged\n")
            host._init.stdin.flush()
        for host in self.hosts:  # both ends of a cable must be up
            expect_up(host)
            wait_until(host.socket.exists, f"the start of {host.name}")

    def _begin_host(self, host: Host) -> None:
        name = self.hosts[0].name if self._same_hostname else host.name
        socket = f"exec {sys.executable} {REMOTE_SHELL} serve {host.socket}"
        steps = [
            f"hostname {name}",
            "mount --make-rprivate /",
            "mount -t tmpfs -o mode=1777 shm /dev/shm",
            "mount -t tmpfs -o mode=755 run /run",
            f"mount -t tmpfs -o mode=1777 local {self.folder / 'local'}",
            f"mount --bind {self.folder / 'hosts'} /etc/hosts",
            # The devices of the host's own network namespace; UCX looks there.
            "mount -t sysfs sysfs /sys",
            "ip link set lo up",
            "echo up && read plugged",
        ]
        if self._overlay is not None:
            steps.insert(1, f"mount -t overlay overlay -o lowerdir={self._overlay}:/usr /usr")
        for network in self.networks:
            steps += self._commands_for_device(host, network)
        # The kernel says this up to a second later; UCX does not use the device before.
        for network in self.networks:
            running = f"/sys/class/net/{network.device}/operstate"
            steps.append(f"until grep -q up {running}; do sleep 0.01; done")
        host._init = subprocess.Popen(
            [*self.enter_keeper(), "unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork",
             "--kill-child", "--mount-proc", "sh", "-c", " && ".join([*steps, "echo up", socket])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PATH": TOOL_PATH, "HOSTNAME": name, "TMPDIR": str(host.tmpdir)},
        )  # fmt: skip
        self.processes.append(host._init)
        expect_up(host)
        host._init_pid = descendants(host._init.pid)[-1]

    def _plug(self, network: Network) -> None:
        inits = [str(pid_in_child_namespace(host._init_pid)) for host in self.hosts]
        if network.is_direct:
            first, second = inits
            ends = [["name", network.device, "netns", init] for init in (first, second)]
            self._ip("link", "add", *ends[0], "type", "veth", "peer", *ends[1])
            return
        self._ip("link", "add", network.bridge, "type", "bridge")
        self._ip("link", "set", network.bridge, "up")
        for host, init in zip(self.hosts, inits, strict=True):
            # The peer's device is made in the host's network namespace at once.
            veth = ["type", "veth", "peer", "name", network.device, "netns", init]
            self._ip("link", "add", port(host, network), *veth)
            self._ip("link", "set", port(host, network), "master", network.bridge)
            self._ip("link", "set", port(host, network), "up")

    def network_file(self, host: Host) -> str:
        """The network namespace of the host, as a file for processes in the keeper's namespaces."""
        return f"/proc/{pid_in_child_namespace(host._init_pid)}/ns/net"

    def _commands_for_device(self, host: Host, network: Network) -> list[str]:
        commands = []
        if not network.ipv6:
            commands.append(f"echo 1 > /proc/sys/net/ipv6/conf/{network.device}/disable_ipv6")
        for address in network.addresses(host.index):
            is_v6 = ":" in address
            length = "64 nodad" if is_v6 else "24"
            commands.append(f"ip addr add {address}/{length} dev {network.device}")
        commands.append(f"ip link set {network.device} up")
        return commands

    def enter_keeper(self) -> list[str]:
        """The start of a command line that runs in the keeper's namespaces."""
        assert self._keeper is not None
        at = f"/proc/{self._keeper.pid}/ns"
        own_user = [f"--user={at}/user", "--preserve-credentials"] if os.getuid() != 0 else []
        return [
            "nsenter",
            *own_user,
            f"--mount={at}/mnt",
            f"--net={at}/net",
            f"--pid={at}/pid_for_children",
            "--",
        ]

    def _in_keeper(self, *command: str) -> str:
        completed = subprocess.run(
            [*self.enter_keeper(), *command],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=HANG_S,
            env={**os.environ, "PATH": TOOL_PATH},
        )
        return completed.stdout

    def _ip(self, *arguments: str) -> None:
        self._in_keeper("ip", *arguments)


def port(host: Host, network: Network) -> str:
    """The bridge's end of the host's cable."""
    return f"port{host.index}.{network.index}"


def expect_up(host: Host) -> None:
    assert host._init is not None and host._init.stdout is not None
    if host._init.stdout.readline() != "up\n":
        raise RuntimeError(f"{host.name} cannot be started")


def descendants(pid: int) -> list[int]:
    """A process, its only child, the only child of that one, ..."""
    line = [pid]
    while children := Path(f"/proc/{line[-1]}/task/{line[-1]}/children").read_text().split():
        line.append(int(children[0]))
    return line


def pid_in_child_namespace(pid: int) -> int:
    """The number that a process has in the PID namespace one below this process's."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("NSpid:"))
    return int(line.split()[2])


def wait_until(condition: Any, what: str, timeout_s: float = HANG_S) -> None:
    """Polls; for conditions of which nothing tells."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} took more than {timeout_s} s")
        time.sleep(0.01)


def missing() -> str:
    """What this machine lacks for a cluster, and what to do; empty if nothing."""
    lacking = [tool for tool in TOOLS if shutil.which(tool, path=TOOL_PATH) is None]
    if lacking:
        return f"{', '.join(lacking)} not found: install iproute2 and util-linux"
    try:
        with Cluster(1):
            return ""
    except (RuntimeError, TimeoutError, OSError, subprocess.SubprocessError) as error:
        return (
            f"{error}: run as root with CAP_SYS_ADMIN and CAP_NET_ADMIN, or allow user namespaces "
            "(kernel.unprivileged_userns_clone=1, user.max_user_namespaces, no AppArmor restriction)"
        )
