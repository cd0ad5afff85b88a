# Each target works alone from a clean clone: it makes .venv and the build tree it needs.
.PHONY: help setup build demo test test-cpp test-sanitized test-python test-multihost test-gpu bench bench-gpu lint format docs clean
.DEFAULT_GOAL := help

VENV := .venv
SETUP := $(VENV)/setup-stamp
RELEASE := build/release
SANITIZED := build/sanitized
# Further options of cmake for the release build.
RELEASE_OPTIONS :=
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

help:
	@echo "make setup | demo | test | bench | lint | format | docs | test-multihost | test-gpu | bench-gpu | clean   (see README.md)"

setup:
	tools/setup

$(SETUP): tools/setup tools/requirements-dev.txt
	tools/setup

$(RELEASE)/build.ninja: $(SETUP)
	cmake -S . -B $(RELEASE) -G Ninja -DWEFT_BUILD_PYTHON=ON -DCMAKE_CXX_COMPILER="$$(cat $(VENV)/cxx-compiler)" \
	    $(RELEASE_OPTIONS)

$(SANITIZED)/build.ninja: $(SETUP)
	cmake -S . -B $(SANITIZED) -G Ninja -DWEFT_SANITIZE=address,undefined -DWEFT_BUILD_EXAMPLES=OFF \
	    -DWEFT_BUILD_BENCHMARKS=OFF -DCMAKE_CXX_COMPILER="$$(cat $(VENV)/cxx-compiler)"

# The examples and mini-apps, and the Python package as the wheel that users get, installed into .venv.
build: $(RELEASE)/build.ninja
	cmake --build $(RELEASE) --target weft_python_package weft_mpi_library weft_examples weft_miniapps
	pip install -q --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall \
	    --config-settings=build-dir=$(RELEASE) .

demo: build
	weft run -n 2 $(RELEASE)/miniapps/jacobi3d --odf 4 --size 128 --iterations 300 --verify
	weft run -n 2 miniapps/jacobi3d/jacobi3d.py --odf 4 --size 128 --iterations 300 --verify

test: test-cpp test-sanitized test-python

test-cpp: $(RELEASE)/build.ninja
	cmake --build $(RELEASE)
	ctest -j 2 --test-dir $(RELEASE) --output-on-failure --no-tests=error

# With 60 s of random traffic between elements that move, come and go.
test-sanitized: $(SANITIZED)/build.ninja
	cmake --build $(SANITIZED) --target weft_tests
	WEFT_SPARSE_TRAFFIC_S=30 ctest -j 2 --test-dir $(SANITIZED) --output-on-failure --no-tests=error

# Two files of tests at a time: half of the time goes into waiting. The tests of a file share what they compile.
test-python: build
	cmake --build $(RELEASE)
	pytest -n 2 --dist loadfile --durations 25

# All tests on several hosts, which are namespaces of this machine; `make test` runs a part of them. FAULT_ROUNDS: how often
# each fault is tried, with different seeds.
FAULT_ROUNDS := 3
test-multihost: build
	cmake --build $(RELEASE)
	WEFT_MULTIHOST=all WEFT_FAULT_ROUNDS=$(FAULT_ROUNDS) pytest tests/multihost

# On a machine with an NVIDIA GPU and its driver; with two GPUs all of it runs. tools/check_gpu measures as well.
# So many tests at a time; each takes the GPU memory of a few CUDA contexts, 0.5 GiB each.
GPU_TEST_WORKERS := 4
test-gpu: build
	cmake --build $(RELEASE) --target weft_tests
	WEFT_REQUIRE_GPU=1 ctest --test-dir $(RELEASE) -L gpu --output-on-failure --no-tests=error
	WEFT_REQUIRE_GPU=1 pytest -m gpu -n $(GPU_TEST_WORKERS)

# A quick build, as continuous integration makes it, is not what is measured.
bench: build
	cmake -DWEFT_QUICK_BUILD=OFF $(RELEASE) >/dev/null
	cmake --build $(RELEASE) --target weft_benchmarks weft_miniapps
	mkdir -p build/bench
	for bench in latency bandwidth rate; do \
	    weft bench $$bench --json build/bench/$$bench.json --plot build/bench/$$bench.png || exit; done

# On a machine with NVIDIA GPUs, for an hour or so; nvcc for Jacobi3D in C++, CuPy for it in Python. A missed figure, or
# one that needs two GPUs where there is one, is no reason to stop.
GPU_RESULTS := build/bench/gpu
bench-gpu: build
	cmake -DWEFT_QUICK_BUILD=OFF $(RELEASE) >/dev/null
	cmake --build $(RELEASE) --target weft_benchmarks weft_miniapps
	mkdir -p $(GPU_RESULTS)
	for bench in latency bandwidth; do \
	    weft bench $$bench --memory cuda --json $(GPU_RESULTS)/$$bench.jsonl --plot $(GPU_RESULTS)/$$bench.png || exit; done
	-python benchmarks/figures.py --memory cuda --json $(GPU_RESULTS)/figures.jsonl
	weft bench jacobi3d --memory cuda --json $(GPU_RESULTS)/jacobi3d.jsonl --plot $(GPU_RESULTS)/jacobi3d.png
	for study in stencil2d pic; do \
	    weft study $$study --memory cuda --trials 10 --fresh --output $(GPU_RESULTS)/study-$$study || exit; done
	-python benchmarks/figures.py --memory cuda --from $(GPU_RESULTS)/*.jsonl
	python benchmarks/published.py $(GPU_RESULTS)/*.jsonl

lint: $(RELEASE)/build.ninja
	tools/check_layers.py
	tools/check_names.py
	mpi/generator/generate.py --check
	ruff check
	ruff format --check
	mypy
	git ls-files -co --exclude-standard '*.h' '*.cpp' '*.cu' | xargs clang-format --dry-run -Werror
	cmake --build $(RELEASE) --target weft_check_headers jacobi3d_version
	tools/run_clang_tidy.py $(RELEASE)

# What `make lint` would complain of and a tool can put right.
format: $(SETUP)
	ruff format -q
	ruff check -q --fix
	git ls-files -co --exclude-standard '*.h' '*.cpp' '*.cu' | xargs clang-format -i

# The pages as a site, beginning at build/docs/index.html, and the Python reference below it. Works without a network.
docs: build
	tools/check_links.py
	sphinx-build -q -W --keep-going -c docs -d build/doctrees . build/docs
	python -W error -m pdoc weft -o build/docs/api

clean:
	rm -rf build .mypy_cache .pytest_cache .ruff_cache .hypothesis
