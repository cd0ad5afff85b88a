"""Each pointer of each function of MPI is replaced by MPI_IN_PLACE and its like: an error, and no crash.

The program is made from the table of functions, so a new function is tested by itself.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
HANG_S = 150

# They end MPI, or pass on what is behind "...".
LEFT_OUT = ("MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Abort", "MPI_Pcontrol")

# Where the values of MPI_IN_PLACE (1), MPI_BUFFER_AUTOMATIC (2) and MPI_UNWEIGHTED (10) are right, or are not
# read: function, parameter, values.
ALLOWED = (
    (r"(?i)MPI_I?(allgather|alltoall|allreduce|exscan|gather|reduce|scan).*", "sendbuf", (1,)),
    (r"(?i)MPI_I?scatterv?(_init)?", "recvbuf", (1,)),
    (r"(?i)MPI_I?exscan(_init)?", "recvbuf", (1, 2, 10)),  # rank 0 gets nothing
    (r"MPI_.*attach(_buffer)?", "buffer", (2,)),
    (r"MPI_Dist_graph.*", ".*weights", (10,)),
    (r"MPI_.*create(_keyval)?", ".*copy(_attr)?_fn", (1,)),  # MPI_COMM_DUP_FN
    (r"MPI_.*set_attr|MPI_Attr_put", "attribute_val", (1, 2, 10)),
    (r"MPI_(Get_a|A)ddress", "location", (1, 2, 10)),
    (r"MPI_Info_create_env", "argv", (1, 2, 10)),
    (r"MPI_T_cvar_handle_alloc", "obj_handle", (1, 2, 10)),  # no variable belongs to an object
    (r".*", "extra_state|status|array_of_statuses", (1, 2, 10)),
)

# Arguments that are no pointers, by their name or else their type.
BY_NAME = {
    "dest": "MPI_PROC_NULL",
    "source": "MPI_PROC_NULL",
    "comm_keyval": "MPI_TAG_UB",
    "keyval": "MPI_TAG_UB",
    "split_type": "MPI_COMM_TYPE_SHARED",
    "order": "MPI_ORDER_C",
    "insize": "64",
    "outsize": "64",
    **dict.fromkeys(("root", "rank", "direction", "tag", "local_leader", "remote_leader"), "0"),
}
BY_TYPE = {
    "int": "1",
    "MPI_Count": "1",
    "MPI_Aint": "1",
    "MPI_Comm": "comm",
    "MPI_Datatype": "MPI_INT",
    "MPI_Errhandler": "MPI_ERRORS_RETURN",
    "MPI_File": "MPI_FILE_NULL",
    "MPI_Group": "group",
    "MPI_Info": "info",
    "MPI_Message": "MPI_MESSAGE_NO_PROC",
    "MPI_Op": "MPI_SUM",
    "MPI_Request": "MPI_REQUEST_NULL",
    "MPI_Session": "MPI_SESSION_NULL",
    "MPI_Win": "MPI_WIN_NULL",
}
# Arrays that hold what a pointer of the type points to.
POINTED_TO = {"int": "ints", "MPI_Count": "counts", "MPI_Aint": "counts", "char": "texts", "void": "ints"}

PROGRAM = """\
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char* now = "";
static int num_accepted;
static MPI_Comm comm;
static MPI_Group group;
static MPI_Info info;
static int ints[16][64];
static MPI_Count counts[16][64];
static char texts[16][16384];
static void* handles[16][64];

static void crash(int signal) {
  (void)signal;
  if (write(2, now, strlen(now)) >= 0) _exit(3);
  _exit(4);
}
static void prepare(const char* name) {
  int i, k;
  now = name;
  memset(handles, 0, sizeof handles);
  for (i = 0; i < 16; ++i) {
    strcpy(texts[i], "key");
    for (k = 0; k < 64; ++k) ints[i][k] = 1, counts[i][k] = 1;
  }
}
static void check(int code, long wrong) {
  if (code != MPI_SUCCESS) return;
  fprintf(stderr, "%s accepts %ld\\n", now, wrong);
  ++num_accepted;
}
__FUNCTIONS__
int main(void) {
  const int extent = 1, periodic = 1;
  MPI_Init(NULL, NULL);
  signal(SIGSEGV, crash);
  signal(SIGBUS, crash);
  signal(SIGABRT, crash);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Cart_create(MPI_COMM_SELF, 1, &extent, &periodic, 0, &comm);
  MPI_Comm_group(comm, &group);
  MPI_Info_create(&info);
  MPI_Info_set(info, "key", "value");
  MPI_T_init_thread(MPI_THREAD_SINGLE, ints[0]);
__CALLS__
  printf("%d accepted\\n", num_accepted);
  return MPI_Finalize();
}
"""


def declared(parameter: Any, large: bool) -> str:
    """The type of a pointer: "const int*" for `const int values[]`, "int (*)[3]" for `int ranges[][3]`."""
    text = str(parameter.declare_unnamed(large))
    if text.endswith("[][3]"):
        return f"{text[:-5].strip()} (*)[3]"
    return f"{text[:-2].strip()}*" if text.endswith("[]") else text


def is_pointer(parameter: Any) -> bool:
    return bool(parameter.stars or parameter.array)


def argument(parameter: Any, place: int, large: bool) -> str:
    """A valid argument, as far as that is possible without knowing the function."""
    word = parameter.type_name(large)
    if not is_pointer(parameter):
        return BY_NAME.get(parameter.name, BY_TYPE.get(word, "0"))
    if parameter.name == "datarep":
        return '"external32"'
    return f"({declared(parameter, large)})(void*){POINTED_TO.get(word, 'handles')}[{place}]"


def allowed_values(function: str, parameter: str) -> set[int]:
    return {
        value
        for functions, parameters, values in ALLOWED
        if re.fullmatch(functions, function) and re.fullmatch(parameters, parameter)
        for value in values
    }


def calls_of(function: Any, large: bool) -> Iterator[str]:
    """A call for each pointer and each wrong value of it."""
    name = f"{function.name}_c" if large else function.name
    parameters = function.parameters_of(large)
    arguments = [argument(parameter, place, large) for place, parameter in enumerate(parameters)]
    for place, parameter in enumerate(parameters):
        if not is_pointer(parameter):
            continue
        for value in sorted({1, 2, 10} - allowed_values(function.name, parameter.name)):
            changed = arguments.copy()
            changed[place] = f"({declared(parameter, large)}){value}"
            yield f'  prepare("{name}: {parameter.name}");'
            yield f"  check({name}({', '.join(changed)}), {value});"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(ROOT / "mpi" / "generator"))
    topics = importlib.import_module("table").read_table(ROOT / "mpi" / "functions")
    states = importlib.import_module("sources").states_of(topics, ROOT / "mpi" / "src")
    blocks = []
    for function in (function for topic in topics for function in topic.functions):
        if function.name in LEFT_OUT or function.result != "int" or not states.is_implemented(function.name):
            continue
        for large in (False, True) if function.has_large_form else (False,):
            blocks.append("\n".join(calls_of(function, large)))
    functions = [f"static void call_{i}(void) {{\n{block}\n}}" for i, block in enumerate(blocks) if block]
    calls = [f"  call_{i}();" for i, block in enumerate(blocks) if block]
    source = tmp_path / "every_pointer.c"
    text = PROGRAM.replace("__FUNCTIONS__", "\n".join(functions)).replace("__CALLS__", "\n".join(calls))
    source.write_text(text)
    compiled = tmp_path / "every_pointer"
    command = [sys.executable, "-m", "weft", "mpicc", "-std=gnu99", "-w", str(source), "-o", str(compiled)]
    subprocess.run(command, check=True, timeout=HANG_S)
    return compiled


def test_no_constant_is_taken_for_an_address(program: Path) -> None:
    done = subprocess.run([program], capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.stderr == ""
    assert done.stdout == "0 accepted\n"
    assert done.returncode == 0
