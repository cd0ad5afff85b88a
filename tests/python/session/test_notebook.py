"""A notebook, run by nbclient in a kernel of its own."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

CELLS = [
    """\
import weft
""",
    """\
class Greeter(weft.Chare):
    def greet(self, name):
        return f"{name}, this is PE {weft.my_pe()}"

    def speak(self):
        print(f"spoken on PE {weft.my_pe()}", flush=True)

async def main():
    greeters = weft.Array(Greeter, 2)
    await greeters[1].speak.call()
    return await greeters.greet.call("first")

weft.run(main, pes=2)
""",
    """\
weft.run(main, pes=2)
""",
    """\
async def failing():
    raise KeyError("from main")

weft.run(failing, pes=2)
""",
    """\
session = weft.session(pes=2)
greeters = session.run(lambda: weft.Array(Greeter, 2))
session
""",
    """\
# A chare of the cell before, awaited at the top level.
await session.submit(lambda: greeters.greet.call("second"))
""",
    """\
# The same without a function: an event loop awaits calls.
[await greeters.greet.call("second"), await greeters[1].greet.call("second")]
""",
    """\
class Greeter(weft.Chare):
    def shout(self, name):
        return name.upper()

async def old_and_new():
    return await greeters.greet.call("third"), await weft.Array(Greeter, 2).shout.call("fourth")

await session.submit(old_and_new)
""",
    """\
weft.run(failing)
""",
    """\
session.close()
session.closed
""",
]
TIMEOUT_S = 150


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What each cell printed and returned, or raised."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    with pytest.MonkeyPatch.context() as patch:
        # With it, ipykernel does not catch what processes write.
        patch.delenv("PYTEST_CURRENT_TEST")
        patch.chdir(tmp_path_factory.mktemp("notebook"))
        NotebookClient(notebook, timeout=TIMEOUT_S, allow_errors=True, kernel_name="python3").execute()
    return [_text(cell["outputs"]) for cell in notebook.cells]


def _text(outputs: list[Any]) -> str:
    text = ""
    for output in outputs:
        if output["output_type"] == "stream":
            text += output["text"]
        elif output["output_type"] == "error":
            text += f"{output['ename']}: {output['evalue']}\n"
        else:
            text += output["data"]["text/plain"] + "\n"
    return text


def test_jobs_of_cells(outputs: list[str]) -> None:
    expected = "spoken on PE 1\n['first, this is PE 0', 'first, this is PE 1']\n"
    assert outputs[1:3] == [expected] * 2


def test_an_exception_in_main_is_that_of_the_cell(outputs: list[str]) -> None:
    assert outputs[3] == outputs[8] == "KeyError: 'from main'\n"


def test_chares_of_a_session_are_used_in_later_cells(outputs: list[str]) -> None:
    assert outputs[4] == "<weft.Session of 2 PEs>\n"
    assert outputs[5] == "['second, this is PE 0', 'second, this is PE 1']\n"


def test_calls_are_awaited_at_the_top_level_of_a_cell(outputs: list[str]) -> None:
    assert outputs[6] == "[['second, this is PE 0', 'second, this is PE 1'], 'second, this is PE 1']\n"


def test_a_class_that_a_later_cell_defines_again(outputs: list[str]) -> None:
    assert outputs[7] == "(['third, this is PE 0', 'third, this is PE 1'], ['FOURTH', 'FOURTH'])\n"


def test_a_session_is_closed(outputs: list[str]) -> None:
    assert outputs[9] == "True\n"
