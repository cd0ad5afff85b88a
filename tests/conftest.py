"""What all Python tests share: where the compiled programs are, and which GPUs there are or are acted."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# They begin first, so that the last one does not run alone.
LONGEST_FILES = (
    "tests/python/mpi/test_mpi4py.py",
    "tests/python/mpi/test_device.py",
    "tests/multihost/test_behaviour.py",
    "tests/python/mpi/test_misuse.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {ROOT / name: i for i, name in enumerate(LONGEST_FILES)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.fixture(autouse=True, scope="session")
def heeded_signals() -> None:
    """Jobs heed signals here as from a terminal: nohup and a shell's `&` hand them down as ignored."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(scope="session")
def build_folder() -> Path:
    """The build tree with the compiled examples and test programs; WEFT_BUILD_FOLDER names another one."""
    folder = Path(os.environ.get("WEFT_BUILD_FOLDER", ROOT / "build" / "quick")).resolve()
    if not (folder / "CMakeCache.txt").is_file():
        pytest.fail(
            f"{folder} is no build tree; run `make test-python`, or set WEFT_BUILD_FOLDER", pytrace=False
        )
    return folder


@pytest.fixture(scope="session")
def stand_in_cuda(build_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The whole environment of a job whose CUDA driver is that of tests/unit/memory/fake_cuda.h: two devices.

    UCX does not take it for a driver, so device memory is staged.
    """
    library = build_folder / "tests" / "unit" / "memory" / "libfake_cuda.so"
    assert library.exists(), f"{library} is not built: `make test-python` builds it"
    folder = tmp_path_factory.mktemp("stand_in_cuda")
    (folder / "libcuda.so.1").symlink_to(library)
    folders = [str(folder), os.environ.get("LD_LIBRARY_PATH", "")]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, folders))}


@pytest.fixture(scope="session")
def need_gpus() -> Callable[[int], None]:
    """need_gpus(count): skips where there are fewer; fails if WEFT_REQUIRE_GPU is set and there is none.

    A machine with one GPU is a GPU machine too: what needs two is skipped there, loudly.
    """
    from weft_bench.gpus import gpu_names

    there = len(gpu_names())

    def need(count: int) -> None:
        if there >= count:
            return
        why = f"{count} GPUs are needed, and the CUDA driver shows {there}"
        if there == 0 and "WEFT_REQUIRE_GPU" in os.environ:
            pytest.fail(f"WEFT_REQUIRE_GPU is set, but {why}", pytrace=False)
        pytest.skip(f"NOT TESTED: {why}")

    return need
