"""The object `charm`: one on each PE, which is a chare of a group too."""

from __future__ import annotations

import importlib
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeVar

from weft import _core
from weft._job.run import run as run_job
from weft.charm4py import _elements, _proxies, _topology
from weft.charm4py._chare import Array, Chare, Group, make_single
from weft.charm4py._device import CudaCopies
from weft.charm4py._futures import Future, iwait, wait_all
from weft.charm4py._pool import Pool
from weft.charm4py._proxies import Proxy, target_of
from weft.charm4py._reducers import added, reducers
from weft.charm4py._sections import combine, split
from weft.charm4py._threads import in_thread, run, wait

_T = TypeVar("_T")


class Charm4PyError(Exception):
    """A use of charm4py that cannot work."""


class Options:
    """`charm.options`. Those without an effect are accepted, because programs set them."""

    def __init__(self) -> None:
        self.remote_exec = False
        #: Calls that a PE sends to one chare run in the order of sending; slower.
        self.ordered = os.environ.get("WEFT_CHARM4PY_ORDERED") == "1"
        self.profiling = False
        self.quiet = False
        self.pickle_protocol = -1
        self.local_msg_optim = True
        self.local_msg_buf_size = 50
        self.auto_flush_wait_queues = True
        self.interactive = _Interactive()


class _Interactive:
    def __init__(self) -> None:
        self.verbose = 1
        self.broadcast_imports = True


class Readonlies:
    """`charm4py.readonlies`: what main sets here, other PEs see from the next creation on."""

    def __setattr__(self, name: str, value: Any) -> None:
        _elements.readonlies[name] = value

    def __getattr__(self, name: str) -> Any:
        try:
            return _elements.readonlies[name]
        except KeyError:
            raise AttributeError(f"no readonly {name} on PE {_core.my_pe()}") from None


def register(cls: _T) -> _T:
    """Decorator of charm4py. Weft finds chare classes by their names, so it has no effect."""
    return cls


class Charm(Chare):
    """The runtime as programs of charm4py see it. Methods that are marked so can be called remotely."""

    def __init__(self) -> None:
        self.options = Options()
        self.reducers = reducers
        self.started = False
        self._pool: Pool | None = None
        #: Copies of device memory.
        self.lib = CudaCopies()
        self._timers: set[Any] = set()

    @staticmethod
    def _make_local() -> Any:
        return charm

    # Staticmethods are no entry methods.
    Future = staticmethod(Future)
    createFuture = staticmethod(Future)
    iwait = staticmethod(iwait)
    split = staticmethod(split)
    combine = staticmethod(combine)

    def start(
        self,
        entry: Any = None,
        classes: Sequence[type] = (),
        modules: Sequence[str] = (),
        interactive: bool = False,
    ) -> NoReturn:
        """Runs the job, on every PE. Ends the process.

        Args:
            entry: a function of the list of arguments, which may block, or a chare class whose chare is made
                on PE 0 with them. It runs on PE 0.
            classes: no effect.
            modules: imported; their classes need no registration.
            interactive: a prompt in place of `entry`.
        """
        for module in modules:
            importlib.import_module(module)
        if interactive:
            from weft.charm4py._console import Console

            entry = Console
            self.options.remote_exec = True
        if not callable(entry):
            raise Charm4PyError("charm.start needs an entry: a function, or a class that derives from Chare")
        self.started = True
        _proxies.sent = {} if self.options.ordered else None

        async def main() -> None:
            await self._begin()
            arguments = [word for word in sys.argv if not word.startswith("+")]
            if isinstance(entry, type):
                await make_single(entry, (arguments,), 0, "main")._created.awaited()
            else:
                await run(entry, arguments)
            await _core.Future()  # until charm.exit()

        run_job(main)
        sys.exit(0)

    async def _begin(self) -> None:
        group = Group(Charm)
        await group._created.awaited()
        names = await group._weft.m_hostName.call()
        await group._weft.a_takeHosts.call(_topology.numbered(names))

    @property
    def pool(self) -> Pool:
        """Runs functions on the PEs."""
        if self._pool is None:
            self._pool = Pool()
        return self._pool

    def myPe(self) -> int:
        """The number of this PE."""
        return _core.my_pe()

    def numPes(self) -> int:
        """How many PEs the job has."""
        return _core.num_pes()

    def awaitCreation(self, *proxies: Proxy) -> None:
        """Blocks until the constructors of collections that this PE has made have returned.

        Raises what a constructor has raised. If nothing waits by then, that ends the job.
        """
        found = [getattr(proxy, "_created", None) for proxy in proxies]
        for future in [made.awaited() for made in found if made is not None]:
            wait(future)

    def wait(self, condition: Any) -> None:
        """Blocks until all of several futures and channels are ready."""
        wait_all(condition)

    def startQD(self, callback: Any) -> None:
        """Calls back when no message is under way and no method runs."""
        _core.quiescence(target_of(callback))

    def waitQD(self) -> None:
        """Blocks until no message is under way and no other method runs."""
        wait(_core.quiescence())

    def sleep(self, secs: float) -> None:
        """Blocks for some seconds: the method, or, if that is no coroutine, the PE."""
        if in_thread():
            wait(_core.sleep(secs))
        else:
            time.sleep(secs)

    def scheduleCallableAfter(
        self,
        callable_obj: Callable[..., Any],
        secs: float,
        args: Iterable[Any] = (),
    ) -> None:
        """Calls a function, a future or the method of a proxy after some seconds, on this PE."""
        values = tuple(args)

        def call() -> None:
            self._timers.discard(timer)
            callable_obj(*values)

        timer = _core._call_later(secs, call)
        self._timers.add(timer)  # one that is dropped does not fire

    def getTopoTreeEdges(
        self,
        pe: int,
        root_pe: int,
        pes: Sequence[int] | None = None,
        bfactor: int = 4,
    ) -> tuple[int, list[int]]:
        """The parent, -1 for the root, and the children of a PE in a tree over PEs."""
        return _topology.edges(pe, root_pe, range(_core.num_pes()) if pes is None else pes, bfactor)

    def getTopoSubtrees(self, root_pe: int, pes: Sequence[int], bfactor: int = 4) -> list[list[int]]:
        """The subtrees below a root: lists of PEs, their own root first."""
        return _topology.subtrees(root_pe, pes, bfactor)

    def myHost(self) -> int:
        """The number of this PE's host."""
        return _topology.hosts[_core.my_pe()]

    def numHosts(self) -> int:
        """How many hosts the job has."""
        return max(_topology.hosts) + 1

    def getHostPes(self, host: int) -> list[int]:
        """The PEs of a host."""
        return [pe for pe, of in enumerate(_topology.hosts) if of == host]

    def getHostFirstPe(self, host: int) -> int:
        """The first PE of a host."""
        return _topology.hosts.index(host)

    def getHostNumPes(self, host: int) -> int:
        """How many PEs a host has."""
        return _topology.hosts.count(host)

    def getPeHost(self, pe: int) -> int:
        """The number of the host of a PE."""
        return _topology.hosts[pe]

    def getPeHostRank(self, pe: int) -> int:
        """The position of a PE among those of its host."""
        return _topology.hosts[:pe].count(_topology.hosts[pe])

    def abort(self, message: str) -> None:
        """Ends the job with a message and the stack of this PE."""
        traceback.print_stack()
        _core._fail(f"charm.abort on PE {_core.my_pe()}: {message}")

    # Those below are called remotely too.

    def exit(self, exit_code: int = 0) -> None:
        """Ends the job, with a code of its processes."""
        _core.exit(exit_code if isinstance(exit_code, int) else 0)

    def updateGlobals(self, globals_dict: dict[str, Any], module_name: str = "__main__") -> None:
        """Sets global variables of a module of this PE."""
        vars(sys.modules[module_name]).update(globals_dict)

    def exec(self, code: str, module_name: str = "__main__") -> None:
        """Runs source text in a module, if charm.options.remote_exec is True."""
        self._expect_remote_exec()
        exec(code, vars(importlib.import_module(module_name)))

    def rexec(self, code: str, module_name: str = "__main__") -> None:
        """As `exec`."""
        self.exec(code, module_name)

    def eval(self, expression: str, module_name: str = "__main__") -> Any:
        """The value of an expression in a module, if charm.options.remote_exec is True."""
        self._expect_remote_exec()
        return eval(expression, vars(importlib.import_module(module_name)))

    def _expect_remote_exec(self) -> None:
        if self.options.remote_exec is not True:
            raise Charm4PyError(
                "code of other PEs is not run by default: set charm.options.remote_exec = True before "
                "charm.start()"
            )

    def addReducer(self, func: Any, pre: Any = None, post: Any = None) -> None:
        """As Reducer.addReducer, on this PE."""
        reducers.addReducer(func, pre, post)

    def createArray(
        self,
        cls: type,
        dims: Any = None,
        ndims: int = -1,
        args: Sequence[Any] = (),
        map: Any = None,
        useAtSync: bool = False,
    ) -> Any:
        """As Array, whose proxy is the result. In Weft every PE may make arrays itself."""
        return Array(cls, dims, ndims, args, map, useAtSync)

    def printStats(self) -> None:
        """charm4py prints times and counts of messages here; here `weft run --stats` does, at the end."""
        print(f"PE {_core.my_pe()}: start the program with `weft run --stats` for times and messages")

    def start_profiling(self) -> None:
        """No effect: use `weft run --stats` or `--trace`."""

    def stop_profiling(self) -> None:
        """No effect: use `weft run --stats` or `--trace`."""

    def hostName(self) -> str:
        """Of the start: the name of this PE's host."""
        return platform.node()

    def takeHosts(self, hosts: list[int]) -> None:
        """Of the start: the hosts of all PEs."""
        _topology.hosts[:] = hosts

    def finishReduction(self, name: str, callback: Any, result: Any) -> None:
        """Of reducers with a function of the result."""
        callback(added(name).post(result))


charm = Charm.__new__(Charm)
Charm.__init__(charm)
readonlies = Readonlies()
