# Each target works alone from a clean clone: it makes .venv and the build tree it needs.
.PHONY: help setup build wheel demo test test-sanitized test-python sanitized-tests-at-rest tested-programs pytest \
        test-release test-install test-multihost test-gpu bench bench-gpu lint lint-all format docs clean
.DEFAULT_GOAL := help

VENV := .venv
SETUP := $(VENV)/setup-stamp
# The full build, which is measured and which users get; the quick one of `make demo` and continuous integration; and that of
# the C++ tests. Each has a folder, so that going from one target to another compiles nothing again.
RELEASE := build/release
QUICK := build/quick
SANITIZED := build/sanitized
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

help:
	@echo "make setup | demo | build | wheel | test | lint | bench | format | docs | clean; test-release | test-install | lint-all | test-multihost | test-gpu | bench-gpu   (see README.md, CONTRIBUTING.md)"

setup:
	tools/setup

$(SETUP): tools/setup tools/requirements-dev.txt
	tools/setup

CONFIGURE = cmake -S . -G Ninja -DCMAKE_CXX_COMPILER="$$(cat $(VENV)/cxx-compiler)"

# Configured again with a new Makefile: an older one made quick builds in this folder. A warning does not stop it: compilers of
# other versions than CI's, and more optimisation, warn of more.
$(RELEASE)/build.ninja: $(SETUP) Makefile
	$(CONFIGURE) -B $(RELEASE) -DWEFT_BUILD_PYTHON=ON -DWEFT_QUICK_BUILD=OFF -DWEFT_WERROR=OFF
	touch $@

$(QUICK)/build.ninja: $(SETUP)
	$(CONFIGURE) -B $(QUICK) -DWEFT_BUILD_PYTHON=ON -DWEFT_QUICK_BUILD=ON

$(SANITIZED)/build.ninja: $(SETUP)
	$(CONFIGURE) -B $(SANITIZED) -DWEFT_SANITIZE=address,undefined -DWEFT_BUILD_EXAMPLES=OFF -DWEFT_BUILD_BENCHMARKS=OFF

# $(call install,TREE,OPTIONS): makes the wheel of a build tree in TREE/wheel, and installs it into .venv, with weft-bench.
PIP_OPTIONS := -q --disable-pip-version-check --no-build-isolation --no-deps
install = rm -rf $(1)/wheel && pip wheel $(PIP_OPTIONS) --wheel-dir $(1)/wheel --config-settings=build-dir=$(1) $(2) . && \
    pip install $(PIP_OPTIONS) --force-reinstall ./benchmarks $(1)/wheel/weft-*.whl

# The examples, the mini-apps and the Python package with the MPI library.
build: $(RELEASE)/build.ninja
	cmake --build $(RELEASE) --target weft_python_package weft_mpi_library weft_examples weft_miniapps
	$(call install,$(RELEASE))

# Wheels for users, in dist/, of each Python on PATH. pip fetches what it builds with.
wheel: $(SETUP)
	tools/make_wheels.py $(PYTHONS)

# Builds what Jacobi3D in both languages needs, without the MPI library.
demo: $(QUICK)/build.ninja
	@echo "demo: compiling Weft and Jacobi3D; the first time this takes some minutes"
	cmake --build $(QUICK) --target weft_python_package jacobi3d
	$(call install,$(QUICK),--config-settings=build.targets=weft_python_package --config-settings=install.components=python)
	weft run -n 2 $(QUICK)/miniapps/jacobi3d --odf 4 --size 128 --iterations 300 --verify
	weft run -n 2 miniapps/jacobi3d/jacobi3d.py --odf 4 --size 128 --iterations 300 --verify

# Python tests wait half of their time, so the C++ tests are compiled meanwhile. The compilers have the idle priority: a test never
# waits for one.
test: tested-programs $(SANITIZED)/build.ninja
	$(MAKE) --jobs=2 sanitized-tests-at-rest pytest
	$(MAKE) test-sanitized

# Without make's flags ninja starts as many compilers as there are cores, and tests that call make are not told of --jobs.
ALONE := env -u MAKEFLAGS
AT_REST := $(if $(shell command -v chrt),chrt --idle 0,nice -n 19)

sanitized-tests-at-rest: $(SANITIZED)/build.ninja
	$(ALONE) $(AT_REST) cmake --build $(SANITIZED) --target weft_tests --parallel $$(nproc) -- --quiet

# The C++ tests, with 20 s of random traffic between elements that move, come and go; `make test-release` has a minute of it.
test-sanitized: $(SANITIZED)/build.ninja
	cmake --build $(SANITIZED) --target weft_tests
	WEFT_SPARSE_TRAFFIC_S=10 ctest -j 2 --test-dir $(SANITIZED) --output-on-failure --no-tests=error

# Two files of tests at a time: half of the time goes into waiting. The tests of a file share what they compile. The longest
# files begin first (tests/conftest.py).
PYTEST := pytest -n 2 --dist loadfile --no-loadscope-reorder

# The sanitized build has no mini-apps.
MINIAPP_TESTS := heat3d_test jacobi3d_test pic_test

test-python: tested-programs
	$(MAKE) pytest

# What the Python tests start, and the installed wheel.
tested-programs: $(QUICK)/build.ninja
	cmake --build $(QUICK) --target weft_tested_programs $(MINIAPP_TESTS)
	ctest --test-dir $(QUICK) --output-on-failure --no-tests=error -R '$(subst $() ,|,$(MINIAPP_TESTS:%=^%$$))'
	$(call install,$(QUICK))

pytest: $(QUICK)/build.ninja
	$(ALONE) WEFT_BUILD_FOLDER=$(QUICK) $(PYTEST) -m "not long" --durations 40

# All tests on the full build: the C++ tests without sanitizers, and the programs that users get.
test-release: build
	cmake --build $(RELEASE)
	WEFT_SPARSE_TRAFFIC_S=30 ctest -j 2 --test-dir $(RELEASE) --output-on-failure --no-tests=error
	WEFT_BUILD_FOLDER=$(RELEASE) $(PYTEST)

# The wheels of `make wheel` on systems without a compiler. Debian and Ubuntu are fetched with debootstrap, as root; `make test`
# installs the wheel of the quick build on this system without its compilers.
test-install: wheel
	pip install $(PIP_OPTIONS) --force-reinstall --no-index --find-links dist weft
	WEFT_WHEELS=dist WEFT_DEBOOTSTRAP="bookworm noble" pytest tests/install/test_clean_systems.py --timeout 1200

# All tests on several hosts, which are namespaces of this machine; `make test` runs a part of them. FAULT_ROUNDS: how often
# each fault is tried, with different seeds.
FAULT_ROUNDS := 3
test-multihost: build
	cmake --build $(RELEASE)
	WEFT_BUILD_FOLDER=$(RELEASE) WEFT_MULTIHOST=all WEFT_FAULT_ROUNDS=$(FAULT_ROUNDS) pytest tests/multihost

# On a machine with an NVIDIA GPU and its driver; with two GPUs all of it runs. tools/check_gpu measures as well.
# So many tests at a time; each takes the GPU memory of a few CUDA contexts, 0.5 GiB each.
GPU_TEST_WORKERS := 4
test-gpu: build
	cmake --build $(RELEASE) --target weft_tests
	WEFT_REQUIRE_GPU=1 ctest --test-dir $(RELEASE) -L gpu --output-on-failure --no-tests=error
	WEFT_BUILD_FOLDER=$(RELEASE) WEFT_REQUIRE_GPU=1 pytest -m gpu -n $(GPU_TEST_WORKERS)

bench: build
	cmake --build $(RELEASE) --target weft_benchmarks weft_miniapps
	mkdir -p build/bench
	for bench in latency bandwidth rate; do \
	    weft bench $$bench --json build/bench/$$bench.json --plot build/bench/$$bench.png || exit; done
	weft bench cores --output build/bench/cores

# On a machine with NVIDIA GPUs, for an hour or so; nvcc for Jacobi3D in C++, CuPy for it in Python. A missed figure, or
# one that needs two GPUs where there is one, is no reason to stop.
GPU_RESULTS := build/bench/gpu
bench-gpu: build
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

# Headers and clang-tidy: what has changed since the last commit at which `make lint-all` found nothing. Reads all if that commit
# is not in the clone.
lint: $(RELEASE)/build.ninja
	tools/check_layers.py
	tools/check_names.py
	mpi/generator/generate.py --check
	ruff check
	ruff format --check
	mypy
	git ls-files -co --exclude-standard '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format --dry-run -Werror
	cmake --build $(RELEASE) --target jacobi3d_version
	tools/check_headers.py $(RELEASE) $(LINT_SCOPE)
	tools/run_clang_tidy.py $(RELEASE) $(LINT_SCOPE)

LINT_SCOPE := --changed

# The same for all files of a working tree without changes. Writes tools/linted-commit, which is committed with the next change.
lint-all:
	commit=$$(tools/linted_commit.py --current) && $(MAKE) lint LINT_SCOPE= && tools/linted_commit.py --remember $$commit

# What `make lint` would complain of and a tool can put right.
format: $(SETUP)
	ruff format -q
	ruff check -q --fix
	git ls-files -co --exclude-standard '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format -i

# The pages as a site, beginning at build/docs/index.html, and the Python reference below it. Works without a network.
docs: build
	tools/check_links.py
	sphinx-build -q -W --keep-going -c docs -d build/doctrees . build/docs
	python -W error docs/reference.py build/docs/api

clean:
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
