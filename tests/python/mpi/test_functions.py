"""The table of MPI's functions, what follows from it, and the names that the library exports."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from weft.launch.mpi_compiler import LIBRARY, package_folder

ROOT = Path(__file__).resolve().parents[3]
GENERATOR = ROOT / "mpi" / "generator"


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """generator("table"): a module of the generator. They import one another by their plain names."""
    monkeypatch.syspath_prepend(str(GENERATOR))
    return importlib.import_module


@pytest.fixture
def topics(generator):
    return generator("table").read_table(ROOT / "mpi" / "functions")


def exported_names() -> set[str]:
    library = package_folder() / "lib" / LIBRARY
    result = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=posix", library], capture_output=True, text=True, check=True
    )
    return {line.split()[0] for line in result.stdout.splitlines()}


def test_the_library_exports_the_functions_of_the_standard_and_those_for_its_host(topics):
    names = {name for topic in topics for function in topic.functions for name in function.names}
    assert len(names) == 672  # 662 of the standard, and 10 that MPI 3.0 removed
    standard = {
        name for name in exported_names() if not name.startswith(("Weft_", "MPIX_", "weft_mpi_host_"))
    }
    assert standard == names | {f"P{name}" for name in names}


def test_the_library_has_the_name_of_the_standard():
    library = package_folder() / "lib" / LIBRARY
    result = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True)
    assert "[libmpi_abi.so.1]" in result.stdout


def test_committed_files_follow_from_the_table():
    result = subprocess.run(
        [sys.executable, GENERATOR / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert result.stdout == ""
    assert result.returncode == 0


def parse(generator, text: str):
    return generator("table").parse_entry(text, "files", "here")


def wrapper(generator, text: str) -> str:
    return "\n".join(generator("sources").wrapper(parse(generator, text)))


def test_a_wrapper_passes_counts_as_they_are(generator):
    text = wrapper(generator, "MPI_X(const void* buf, COUNT count, MPI_Comm comm)")
    assert "int MPI_X(const void* buf, int count, MPI_Comm comm) {" in text
    assert "return MPI_X_c(buf, count, comm);" in text


def test_a_wrapper_widens_arrays(generator):
    text = wrapper(
        generator, "MPI_X(const COUNT counts[peers], const DISPLACEMENT displs[n], int n, MPI_Comm comm)"
    )
    assert "const Widened<MPI_Count, int> large_counts(counts, peers(comm));" in text
    assert "const Widened<MPI_Aint, int> large_displs(displs, n);" in text
    assert "return MPI_X_c(large_counts.data(), large_displs.data(), n, comm);" in text
    assert "without_exceptions(__func__, comm," in text


def test_a_wrapper_narrows_results_after_a_success(generator):
    text = wrapper(generator, "MPI_X(ADDRESS* position, COUNT* size)")
    assert "MPI_Count large_position = is_address(position) ? *position : 0;" in text
    assert "MPI_Count large_size = 0;" in text
    assert "if (code != MPI_SUCCESS) return code;" in text
    assert "if (is_address(size)) *size = narrowed<int>(large_size);" in text


def test_both_forms_of_an_entry_have_their_types(generator):
    function = parse(generator, "MPI_X(COUNT n, LARGE_ONLY COUNT more, ADDRESS at[], int ranges[][3])")
    assert function.names == ("MPI_X", "MPI_X_c")
    assert function.prototype(False) == "int MPI_X(int n, MPI_Aint at[], int ranges[][3])"
    assert function.prototype(True, "P") == (
        "int PMPI_X_c(MPI_Count n, MPI_Count more, MPI_Count at[], int ranges[][3])"
    )


def test_a_stub_uses_the_error_handler_of_its_object(generator):
    stub = generator("sources").stub
    assert "not_implemented(__func__, win)" in "\n".join(
        stub(parse(generator, "MPI_X(int a, MPI_Win win)"), False)
    )
    assert "MPI_FILE_NULL" in "\n".join(stub(parse(generator, "MPI_X(const char* name)"), False))


@pytest.mark.parametrize("text", ["MPI_X(int)", "MPI_X(int a", "int a", "MPI_X(int a; int b)"])
def test_a_wrong_entry_is_refused_with_its_place(generator, text):
    with pytest.raises(SystemExit, match="here: "):
        parse(generator, text)


def test_a_function_that_the_table_does_not_have_is_refused(generator, topics, tmp_path):
    (tmp_path / "extra.cpp").write_text("int MPI_Imagined(int value) { return value; }\n")
    with pytest.raises(SystemExit, match="MPI_Imagined"):
        generator("sources").states_of(topics, tmp_path)


def test_a_form_that_cannot_be_generated_is_asked_for(generator, topics, tmp_path):
    (tmp_path / "op.cpp").write_text(
        "int MPI_Op_create_c(MPI_User_function_c* user_fn, int commute, MPI_Op* op) {\n"
    )
    with pytest.raises(SystemExit, match="write MPI_Op_create by hand"):
        generator("sources").states_of(topics, tmp_path)


@pytest.mark.parametrize("num_pes", [None, 3])
def test_small_forms_pass_on_their_arrays_and_results(run_mpi, num_pes):
    result = run_mpi("small_forms", num_pes)
    assert result.stderr == ""
    assert result.stdout == f"small forms on {num_pes or 1} ranks: as expected\n"
    assert result.returncode == 0
