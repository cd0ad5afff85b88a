"""tools/check_layers.py reports every kind of violation, planted in a small tree, and nothing else."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "check_layers.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_layers", TOOL)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_layers"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


check_layers = load()

LAWFUL = {
    "include/weft/base/status.h": "#include <string>\n",
    "include/weft/memory/buffer.h": '#include "weft/base/status.h"\n',
    "include/weft/runtime/runtime.h": '#include "weft/memory/buffer.h"\n',
    "include/weft/chare/chare.h": '#include "weft/runtime/runtime.h"\n',
    "include/weft/channel/channel.h": '#include "weft/chare/chare.h"\n#include "weft/runtime/runtime.h"\n',
    "include/weft/weft.h": '#include "weft/chare/chare.h"\n#include "weft/channel/channel.h"\n',
    "src/memory/kinds/cuda/driver.cpp": '#include <dlfcn.h>\n#include "memory/kinds/cuda/driver.h"\n',
    "src/memory/kinds/cuda/driver.h": "",
    "src/base/text.h": "#include <memory>\n",
    "src/base/error.cpp": "void fail() { throw Error(StatusCode::kCorrupt); }\n",
    "src/machine/file.cpp": "// It does not throw;\nStatus open();\n",
    "src/runtime/edge.cpp": "void call() { throw Error(StatusCode::kInvalidArgument); }\n",
    "src/memory/kinds/cuda/kind.cpp": '#include "memory/kinds/cuda/driver.h"\n',
    "src/machine/machine.h": '#include "weft/memory/buffer.h"\n',
    "src/machine/ucx/ucx_machine.h": '#include <ucp/api/ucp.h>\n#include "machine/machine.h"\n',
    "src/machine/loopback/loopback.h": '#include "machine/machine.h"\n',
    "src/machine/factory/factory.cpp": '#include "machine/loopback/loopback.h"\n',
    "src/runtime/pe.cpp": '#include "machine/machine.h"\n#include "weft/runtime/runtime.h"\n',
    "src/models/channel/channel.cpp": '#include "models/chare/location.h"\n',
    "src/models/chare/location.h": '#include "balance/snapshot.h"\n',
    "src/balance/snapshot.h": '#include "weft/base/status.h"\n',
    "python/src/core.cpp": '#include <nanobind/nanobind.h>\n#include "weft/weft.h"\n',
    "examples/ring.cpp": '#include "weft/weft.h"\n',
    "benchmarks/machine.cpp": '#include "machine/ucx/ucx_machine.h"\n',
    "benchmarks/raw_ucx.cpp": "#include <ucp/api/ucp.h>\n",
    "benchmarks/raw_ucx_pair.h": "#include <ucp/api/ucp.h>\n",
    "tests/unit/machine/ucx_test.cpp": '#include "machine/ucx/ucx_machine.h"\n#include <ucp/api/ucp.h>\n',
    "src/base/CMakeLists.txt": "weft_add_layer(NAME base SOURCES a.cpp)\n",
    "src/memory/CMakeLists.txt": "weft_add_layer(NAME memory\n  SOURCES b.cpp\n  DEPENDS weft::base)\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in LAWFUL.items():
        write(tmp_path, name, text)
    return tmp_path


def write(tree: Path, name: str, text: str) -> None:
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def reports(tree: Path) -> list[str]:
    return [str(violation) for violation in check_layers.check(tree)]


def test_a_lawful_tree_has_no_violations(tree: Path) -> None:
    assert reports(tree) == []


PLANTED = [
    # file, include line, words of the report
    ("src/base/log.cpp", '#include "weft/memory/buffer.h"', "base includes memory, which is above it"),
    ("include/weft/memory/kind.h", '#include "weft/runtime/runtime.h"', "memory includes runtime"),
    ("src/balance/greedy.h", '#include "weft/memory/buffer.h"', "balance includes memory, which is beside"),
    ("src/balance/collect.h", '#include "runtime/pe.h"', "balance includes runtime, which is above it"),
    ("src/memory/shares.h", '#include "balance/snapshot.h"', "memory includes balance, which is beside it"),
    ("src/models/channel/ends.h", '#include "weft/job/job.h"', "channel includes job, which is above it"),
    ("src/machine/wait.h", '#include "runtime/pe.h"', "machine includes runtime"),
    ("src/runtime/pe.h", '#include "models/chare/location.h"', "runtime includes chare"),
    ("src/runtime/pe.h", "#include <weft/weft.h>", "runtime includes umbrella"),
    ("src/runtime/pe.h", '#include "weft/device/kernels.cuh"', "runtime includes device, which is above it"),
    ("include/weft/device/kernels.cuh", '#include "weft/base/status.h"', "device includes base"),
    ("include/weft/device/kernels.cuh", "#include <cuda.h>", "outside src/memory/kinds/cuda/"),
    ("src/models/chare/array.h", '#include "weft/channel/channel.h"', "chare includes channel, which"),
    ("src/models/pgas/pointer.h", '#include "weft/chare/chare.h"', "pgas includes chare, which is beside it"),
    ("src/models/mpi/comm.h", '#include "../chare/location.h"', "mpi includes chare, which is beside it"),
    ("src/runtime/send.cpp", "#include <ucp/api/ucp.h>", "outside src/machine/ucx/"),
    ("benchmarks/machine.cpp", "#include <ucp/api/ucp.h>", "outside src/machine/ucx/"),
    ("src/machine/tag.h", "#  include <ucs/type/status.h>", "outside src/machine/ucx/"),
    ("src/machine/ucx/am.cpp", "#include <cuda_runtime.h>", "outside src/memory/kinds/cuda/"),
    ("src/models/chare/a.cpp", "#include <cuda.h>", "outside src/memory/kinds/cuda/"),
    ("src/runtime/gil.cpp", "#include <Python.h>", "outside python/"),
    ("include/weft/chare/bind.h", '#include "nanobind/nanobind.h"', "outside python/"),
    ("src/runtime/boot.cpp", '#include "machine/ucx/ucx_machine.h"', "names a concrete machine"),
    ("src/machine/ucx/ucx.cpp", '#include "machine/loopback/loopback.h"', "names a concrete machine"),
    ("python/src/gpu.cpp", '#include "memory/kinds/cuda/driver.h"', "names a concrete memory kind"),
    ("src/runtime/device.cpp", '#include "memory/kinds/emulated/backend.h"', "names a concrete memory kind"),
    ("src/memory/memory.cpp", '#include "memory/kinds/cuda/driver.h"', "names a concrete memory kind"),
    (
        "include/weft/machine/info.h",
        '#include "machine/machine.h"',
        "is private, and this header installed",
    ),
    ("examples/gpu.cpp", "#include <cuda_runtime.h>", "outside src/memory/kinds/cuda/"),
    ("examples/peek.cpp", '#include "runtime/pe.h"', "use what a user has"),
    ("miniapps/pic/peek.cpp", '#include "runtime/pe.h"', "use what a user has"),
    ("src/checkpoint/disk.cpp", 'void read() { throw Error(kNotFound, "gone"); }', "checkpoint throws"),
    ("src/base/pack.cpp", "void size() { throw std::bad_alloc(); }", "base throws"),
    ("src/runtime/arrive.cpp", 'throw base::Error(base::StatusCode::kCorrupt, "x");', "kCorrupt is thrown"),
    ("python/src/name.cpp", "const char* name = Py_TYPE(one)->tp_name;", "tp_name is not in the stable ABI"),
    (
        "python/src/await/follow.cpp",
        'static PyObject* const follow = import_from("weft", "follow").release();',
        "an import in the initialiser of a static variable",
    ),
    ("src/base/odd.h", "#include HEADER_NAME(x)", "is computed and cannot be checked"),
]


@pytest.mark.parametrize(("file", "line", "words"), PLANTED, ids=[f"{f}:{w}" for f, _, w in PLANTED])
def test_a_planted_violation_is_reported_where_it_is(tree: Path, file: str, line: str, words: str) -> None:
    write(tree, file, f"// two lines\n#pragma once\n{line}\n")
    (report,) = reports(tree)
    assert report.startswith(f"{file}:3: ")
    assert words in report
    assert ";" in report.split(": ", 1)[1], "what to do follows a semicolon"


def test_an_include_in_a_comment_is_none(tree: Path) -> None:
    write(tree, "src/base/a.h", '/*\n#include "weft/memory/buffer.h"\n*/\n// #include <ucp/api/ucp.h>\n')
    assert reports(tree) == []


def test_the_full_api_of_python_may_be_used_beside_the_stable_abi(tree: Path) -> None:
    own, other = "  type->tp_free(self);\n", "  free(self);\n"
    lawful = f"#ifdef Py_LIMITED_API\n{other}#else\n{own}#endif\n#ifndef Py_LIMITED_API\n{own}#endif\n"
    write(tree, "python/src/free.cpp", lawful)
    assert reports(tree) == []
    write(tree, "python/src/free.cpp", f"{lawful}#ifdef OTHER\n{own}#else\n{own}#endif\n")
    assert [report.split(":")[1] for report in reports(tree)] == ["10", "12"]
    write(tree, "python/src/free.cpp", f"#ifdef Py_LIMITED_API\n{own}#else\n{own}#endif\n")
    assert [report.split(":")[1] for report in reports(tree)] == ["2"]


def test_an_upward_link_is_reported(tree: Path) -> None:
    write(tree, "src/base/CMakeLists.txt", "weft_add_layer(NAME base \n  DEPENDS weft::runtime)\n")
    (report,) = reports(tree)
    assert report.startswith("src/base/CMakeLists.txt:2: base links runtime")


@pytest.mark.parametrize(
    "file", ["src/network/socket.h", "include/weft/io/file.h", "src/models/actor/actor.h"]
)
def test_a_folder_that_is_no_layer_is_reported(tree: Path, file: str) -> None:
    write(tree, file, "")
    (report,) = reports(tree)
    assert report.startswith(f"{file}:1: {Path(file).parent} is no layer")


def test_exit_status(tree: Path) -> None:
    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, TOOL, tree], capture_output=True, text=True, check=False)

    assert run().returncode == 0
    write(tree, "src/base/a.h", "#include <ucp/api/ucp.h>\n")
    failed = run()
    assert failed.returncode == 1
    assert "src/base/a.h:1:" in failed.stdout


def test_an_empty_tree_is_an_error_not_a_success(tmp_path: Path) -> None:
    assert check_layers.main([str(tmp_path)]) == 1


def test_a_mini_app_may_have_kernels_of_its_own(tree: Path) -> None:
    write(tree, "miniapps/stencil/kernels.cu", "#include <cuda_runtime.h>\n")
    assert reports(tree) == []


def test_a_cycle_between_two_units_is_reported_with_its_way(tree: Path) -> None:
    write(tree, "src/runtime/queue.h", '#include "runtime/turn.h"\n')
    write(tree, "src/runtime/turn.h", "")
    write(tree, "src/runtime/turn.cpp", '#include "runtime/turn.h"\n#include "runtime/queue.h"\n')
    (report,) = reports(tree)
    assert report.startswith("src/runtime/queue.h:1: ")
    assert "src/runtime/queue -> src/runtime/turn -> src/runtime/queue" in report
    assert ";" in report.split(": ", 1)[1], "what to do follows a semicolon"


def test_a_source_and_a_public_header_of_its_name_are_one_unit(tree: Path) -> None:
    write(tree, "include/weft/runtime/send.h", "")
    write(tree, "src/runtime/message/send.cpp", '#include "weft/runtime/send.h"\n#include "runtime/pool.h"\n')
    write(tree, "src/runtime/pool.h", '#include "weft/runtime/send.h"\n')
    (report,) = reports(tree)
    assert "include/weft/runtime/send -> src/runtime/pool -> include/weft/runtime/send" in report


def test_a_longer_cycle_is_one_report(tree: Path) -> None:
    for user, used in (("a", "b"), ("b", "c"), ("c", "a")):
        write(tree, f"src/base/{user}.h", f'#include "base/{used}.h"\n')
    (report,) = reports(tree)
    assert "src/base/a -> src/base/b -> src/base/c -> src/base/a" in report


def test_units_that_share_what_is_below_them_form_no_cycle(tree: Path) -> None:
    write(tree, "src/base/low.h", "")
    write(tree, "src/base/left.h", '#include "base/low.h"\n')
    write(tree, "src/base/right.h", '#include "base/low.h"\n#include "base/left.h"\n')
    write(tree, "src/base/right.cpp", '#include "base/right.h"\n')
    assert reports(tree) == []


def test_a_cycle_between_two_folders_is_reported(tree: Path) -> None:
    write(tree, "src/runtime/queue.h", "")
    write(tree, "src/runtime/timers/timer.h", '#include "runtime/queue.h"\n')
    assert reports(tree) == [], "a folder may use what is above it"
    write(tree, "src/runtime/turn.h", '#include "runtime/timers/timer.h"\n')
    (report,) = reports(tree)
    assert "a cycle of folders: src/runtime -> src/runtime/timers -> src/runtime" in report


def test_a_wide_folder_is_reported(tree: Path) -> None:
    for number in range(25):
        write(tree, f"src/checkpoint/file{number}.h", "")
        write(tree, f"tests/unit/checkpoint/file{number}_test.cpp", "")
    assert reports(tree) == []
    write(tree, "src/checkpoint/file25.h", "")
    (report,) = reports(tree)
    assert report.startswith("src/checkpoint:1: 26 files in one folder, at most 25 may be")


def test_a_cycle_in_the_python_extension_is_reported(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_layers, "UNIT_CYCLES_EXEMPT", frozenset())
    write(tree, "python/src/codec/encoder.h", '#include "codec/array.h"\n')
    write(tree, "python/src/codec/array.h", '#include "codec/encoder.h"\n')
    (report,) = reports(tree)
    assert "python/src/codec/array -> python/src/codec/encoder -> python/src/codec/array" in report
