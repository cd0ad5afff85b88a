"""weft.run(main, pes=N): this process is PE 0, and the others are started for the job."""

from __future__ import annotations

import os
import re
import sys
import types

import pytest

import weft
import weft.pgas


class Counter(weft.Chare):
    """Travels by value: pytest has imported this module in a way of its own."""

    def __init__(self, step=1):
        self.value = 0
        self.step = step

    def add(self, point):
        self.value += point.x * self.step
        return Point(self.value), os.getpid()

    def fail(self):
        raise KeyError("nothing awaits this")

    def make_others(self):
        return weft.Array(Other, 2)


class Point:
    def __init__(self, x):
        self.x = x


class Other(weft.Chare):
    def pe(self):
        return weft.my_pe()


async def sum_up():
    return await weft.Array(Counter, 4, args=(2,)).add.call(Point(5))


def test_jobs_follow_one_another_and_their_classes_are_those_of_this_process() -> None:
    for pes in (2, 3, 1, 2):
        results = weft.run(sum_up, pes=pes)
        assert [type(point) for point, _ in results] == [Point] * 4
        assert [point.x for point, _ in results] == [10] * 4
        processes = {process for _, process in results}
        assert len(processes) == pes
        assert os.getpid() in processes


def test_main_may_be_a_closure_and_its_objects_are_those_of_the_caller() -> None:
    seen = []

    class Local(weft.Chare):
        def scale(self, function, value):
            return function(value), weft.my_pe()

    async def main():
        factor = 3
        chares = weft.Array(Local, 2)
        seen.append(await chares.scale.call(lambda value: value * factor, 7))
        return seen

    assert weft.run(main, pes=2) is seen
    assert seen == [[(21, 0), (21, 1)]]


def test_a_pe_makes_collections_of_classes_that_came_by_value() -> None:
    async def main():
        counters = weft.Array(Counter, 2)
        others = await counters[1].make_others.call()
        mine = weft.Array(Other, 2)
        return await others.pe.call(), await mine.pe.call()

    assert weft.run(main, pes=2) == ([0, 1], [0, 1])


def test_what_main_raises_is_raised_itself_and_the_other_pes_end() -> None:
    error = ValueError("boom")

    async def coroutine():
        await weft.Array(Counter, 2).add.call(Point(1))
        raise error

    def function():
        raise error

    for main in (coroutine, function):
        with pytest.raises(ValueError, match="boom") as caught:
            weft.run(main, pes=2)
        assert caught.value is error
        assert main.__name__ in [entry.name for entry in caught.traceback]


def test_pytest_outcomes_in_main_are_those_of_the_test() -> None:
    async def main():
        pytest.fail("in main")

    with pytest.raises(pytest.fail.Exception, match="in main"):
        weft.run(main, pes=2)


def test_an_error_that_nothing_awaits_is_raised_with_its_traceback() -> None:
    async def main():
        weft.Array(Counter, 2)[1].fail()
        await weft.Future()

    words = r"left Counter\[1\].fail on PE 1(.|\n)*nothing awaits this"
    with pytest.raises(weft.Error, match=words) as caught:
        weft.run(main, pes=2)
    assert __file__ in str(caught.value)


def test_a_pe_that_dies_is_named_and_this_process_goes_on() -> None:
    class Dying(weft.Chare):
        def die(self):
            os.kill(os.getpid(), 9)

    async def main():
        await weft.Array(Dying, 2)[1].die.call()

    with pytest.raises(weft.Error, match=r"PE 1 \(pid \d+\) was killed by signal 9 \(SIGKILL\)"):
        weft.run(main, pes=2)
    assert weft.run(sum_up, pes=2)


# PE 0, in this process, already waits for PE 1 to stop.
DEATH_AT_THE_END = """\
import os, signal, weft
class Dying(weft.Chare):
    def ready(self): pass
    def die(self): os.kill(os.getpid(), signal.SIGKILL)
async def main():
    chares = weft.Array(Dying, 2)
    await chares.ready.call()
    chares[1].die()
try:
    weft.run(main, pes=2)
except weft.Error as error:
    print(error)
"""


def test_a_pe_that_dies_while_the_job_ends_is_named(run_program) -> None:
    ended = run_program(DEATH_AT_THE_END)
    assert re.search(r"PE 1 \(pid \d+\) was killed by signal 9 \(SIGKILL\)", ended.stdout), ended.stderr


def test_a_launcher_that_dies_ends_the_job() -> None:
    async def main():
        (launcher,) = await weft.Array(Parent, 2)[1].get.call()
        os.kill(launcher, 9)
        await weft.Future()

    class Parent(weft.Chare):
        def get(self):
            return [os.getppid()]

    with pytest.raises(weft.Error, match=r"launcher of the other PEs \(pid \d+\) was killed by signal 9"):
        weft.run(main, pes=2)


def test_functions_for_pools_teams_and_reductions_travel() -> None:
    class Member(weft.Chare):
        async def longest(self):
            return await self.allreduce("x" * (self.index + 1), weft.Reducer.custom(longer))

    async def main():
        async with weft.Pool() as pool:
            squares = await pool.map(square, range(5))
        team = weft.pgas.world()
        return squares, await team.rpc(1, place, 4), await weft.Array(Member, 4).longest.call()

    assert weft.run(main, pes=2) == ([0, 1, 4, 9, 16], (1, 4), ["xxxx"] * 4)


def square(x):
    return x * x


def place(x):
    return weft.my_pe(), x


def longer(one, other):
    return max(one, other, key=len)


def test_weft_exit_is_an_exit_code() -> None:
    async def main():
        weft.exit(3)

    with pytest.raises(SystemExit) as caught:
        weft.run(main, pes=2)
    assert caught.value.code == 3


def test_the_environment_is_that_of_the_caller_in_main_and_afterwards() -> None:
    before = dict(os.environ)

    async def main():
        return dict(os.environ)

    assert weft.run(main, pes=2) == before
    assert dict(os.environ) == before


def test_a_definition_that_does_not_travel_is_named() -> None:
    generator = (i for i in range(3))

    class Bound(weft.Chare):
        def f(self):
            return next(generator)

    async def main():
        weft.Array(Bound, 2)

    with pytest.raises(weft.Error, match=r"Bound is defined where .* travels by value"):
        weft.run(main, pes=2)


@pytest.mark.parametrize("pes", [0, -1, 4097, True, 2.0, "2"])
def test_a_number_of_pes_is_a_positive_integer(pes) -> None:
    with pytest.raises(weft.Error, match="give the number of PEs, a whole number from 1 to 4096"):
        weft.run(sum_up, pes=pes)


def test_a_module_without_a_file_travels_by_value() -> None:
    module = types.ModuleType("made_up")
    exec("import weft\nclass Made(weft.Chare):\n    def pe(self): return weft.my_pe()", module.__dict__)
    sys.modules["made_up"] = module
    try:

        async def main():
            return await weft.Array(module.Made, 2).pe.call()

        assert weft.run(main, pes=2) == [0, 1]
    finally:
        del sys.modules["made_up"]


SCRIPT = """\
import weft, sys
class A(weft.Chare):
    def pe(self): return weft.my_pe(), __name__, sys.argv[1:]
async def main():
    print(await weft.Array(A, 2).pe.call())
weft.run(main, pes=2)
weft.run(main, pes=2)
"""


def test_a_script_is_run_once_and_its_classes_travel(run_program) -> None:
    ended = run_program(SCRIPT, "an argument")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "[(0, '__main__', ['an argument']), (1, '__main__', ['an argument'])]\n" * 2


def test_the_launch_decides_how_many_pes_there_are(run_program) -> None:
    assert run_program(SCRIPT, launched=2).returncode == 0
    ended = run_program(SCRIPT, launched=3)
    assert ended.returncode == 1
    assert "weft.run was called with pes=2 in a launch of 3 PEs: leave out pes=" in ended.stderr


def test_a_process_of_a_launch_may_start_pes_of_its_own(run_program, monkeypatch) -> None:
    monkeypatch.setenv("WEFT_BOOTSTRAP", "singleton")
    # As a launcher of PMIx and one of PMI leave them.
    monkeypatch.setenv("PMIX_NAMESPACE", "namespace")
    monkeypatch.setenv("PMIX_RANK", "0")
    monkeypatch.setenv("PMI_FD", "0")
    monkeypatch.setenv("PMI_SIZE", "4")
    ended = run_program(SCRIPT)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.count("(1, '__main__', [])") == 2


SPAWN = """\
import concurrent.futures, multiprocessing, sys, weft
print("imported")
def square(x): return x * x
class A(weft.Chare):
    def squares(self, method):
        context = multiprocessing.get_context(method)
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
            return list(executor.map(square, range(3)))
async def main():
    return await weft.Singleton(A, weft.num_pes() - 1).squares.call(sys.argv[1])
result = weft.run(main)
if __name__ == "__main__" and result: print(result)
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize("launched", [None, 2])
def test_children_of_multiprocessing_do_not_run_the_job_again(run_program, method, launched) -> None:
    ended = run_program(SPAWN, method, launched=launched)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "[0, 1, 4]\n" in ended.stdout
