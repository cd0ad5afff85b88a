"""weft/device/kernels.cuh compiles for kernels of the program: NVRTC needs no GPU for that."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
from pathlib import Path

import pytest

import weft

SOURCE = """
#include "weft/device/kernels.cuh"
#include "weft/device/kernels.cuh"
using namespace weft::device;
extern "C" __global__ void all_functions(const unsigned long long* addresses, char* from, size_t bytes,
                                         int pe) {
  char* const to = peer<char>(addresses, pe);
  Word* const flag = peer<Word>(addresses, pe + 1);
  put(to, from, bytes);
  put_warp(to, from, bytes);
  put_block(to, from, bytes);
  signal(flag, 1);
  signal_warp(flag, 2);
  signal_block(flag, 3);
  signal_add(flag, 1);
  put_signal(to, from, bytes, flag, 5);
  put_signal_warp(to, from, bytes, flag, 6);
  put_signal_block(to, from, bytes, flag, 7);
  Packet* const packets = peer<Packet>(addresses, pe);
  put_packets(packets, from, bytes, 1);
  put_packets_warp(packets, from, bytes, 2);
  put_packets_block(packets, from, bytes, 3);
  take_packets(from, packets, bytes, 1);
  take_packets_warp(from, packets, bytes, 2);
  take_packets_block(from, packets, bytes, 3);
  wait(flag, load(flag));
  wait_warp(flag, 8);
  wait_block(flag, 9);
}
"""


def find_nvrtc() -> ctypes.CDLL:
    package = importlib.util.find_spec("nvidia")
    folders = (package.submodule_search_locations or []) if package else []
    found = [str(path) for folder in folders for path in sorted(Path(folder).glob("*/lib/libnvrtc.so.*"))]
    for path in (*found, ctypes.util.find_library("nvrtc")):
        if path is not None:
            return ctypes.CDLL(path)
    pytest.skip("NOT TESTED: there is no NVRTC; pip install nvidia-cuda-nvrtc-cu12")


def compile_for(architecture: str, *options: str) -> tuple[int, str, str]:
    """The result of NVRTC, its log, and the PTX."""
    nvrtc = find_nvrtc()
    program = ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), SOURCE.encode(), b"k.cu", 0, None, None) == 0
    given = [f"--gpu-architecture={architecture}", f"-I{weft.include_dir()}", *options]
    values = (ctypes.c_char_p * len(given))(*[option.encode() for option in given])
    result = nvrtc.nvrtcCompileProgram(program, len(given), values)

    def text(of: str) -> str:
        size = ctypes.c_size_t()
        getattr(nvrtc, f"nvrtcGet{of}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        getattr(nvrtc, f"nvrtcGet{of}")(program, buffer)
        return buffer.value.decode()

    found = result, text("ProgramLog"), text("PTX") if result == 0 else ""
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return found


def test_the_folder_has_the_header() -> None:
    folder = Path(weft.include_dir())
    assert folder.is_absolute()
    assert (folder / "weft/device/kernels.cuh").is_file()


def test_the_header_includes_nothing() -> None:
    text = (Path(weft.include_dir()) / "weft/device/kernels.cuh").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("//")]
    assert not [line for line in lines if "#include" in line]


@pytest.mark.parametrize("standard", ["c++17", "c++20"])
@pytest.mark.parametrize("architecture", ["compute_75", "compute_80", "compute_90"])
def test_it_compiles(architecture: str, standard: str) -> None:
    result, log, ptx = compile_for(architecture, f"--std={standard}")
    assert (result, log.strip("\x00\n ")) == (0, ""), log
    for instruction in ("ld.acquire.sys", "st.release.sys", "red.release.sys", "v4.u32"):
        assert instruction in ptx
