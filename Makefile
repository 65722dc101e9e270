# Everything a stranger needs, from a fresh Debian 12 (root or sudo, Python 3.11):
#
#   make test        set up (once), build, run the C tests and the Python tests
#   make demo        train a small network with torch's loader and with drapps, side by side
#   make check-all   make test, then both compilers, sanitizers, fuzzing, the stress suite and, if it can, check-arm
#   make check-arm   the C tests for 64-bit ARM, cross-compiled and run by qemu-user
#   make bench       speed beside other loaders: make bench DATA=folder-of-images [PHOTOS=folder]
#   make wheel       a wheel with its libraries inside, tried in an empty environment
#   make docs        the documentation as a site: build/docs/html/index.html
#   make install     the C library, headers and pkg-config file: make install PREFIX=/usr/local
#   make lint        ruff over the Python files, and whether clang-format would change a C file
#   make lint-all    make lint, mypy over the Python package and cppcheck over the C files; part of CI
#   make format      clang-format over the C files
#   make clean       remove what was built (keeps .venv); make distclean removes that too
#
# Set-up leaves stamps, so a second run only does what changed.

PYTHON ?= python3
export PYTHON
PREFIX ?= /usr/local
FUZZ_MINUTES ?= 2
CHECK_COMPILERS ?= gcc clang
# Python tests that run at a time: more than CPUs where these are few, as many tests wait for processes and servers.
TEST_JOBS ?= 4

VENV := .venv
PY := $(abspath $(VENV))/bin/python
MESON := $(abspath $(VENV))/bin/meson
export PATH := $(abspath $(VENV))/bin:$(PATH)

WERROR := $(if $(filter true 1,$(CI)),true,false)
CONFIGURED := build/.configured-werror-$(WERROR)
INSTALLED := $(VENV)/.installed
# The extension and the package are made from these.
PACKAGE_FILES := $(shell find meson.build meson.options pyproject.toml README.md include src python tools \
	-type f -not -name '*.pyc' -not -path '*/.*')

.PHONY: all test test-c test-python demo check-all check-compilers check-sanitizers check-fuzz check-stress \
	check-arm check-arm-if-there bench docs wheel install lint lint-all format clean distclean system system-test system-check

all: $(CONFIGURED)
	$(MESON) compile -C build

# --- set-up ---

system:
	@scripts/system-packages build

system-test:
	@scripts/system-packages test

system-check:
	@scripts/system-packages check

$(VENV)/.ready: scripts/venv.txt scripts/venv-no-deps.txt scripts/remote-tests.txt | system
	$(PYTHON) scripts/check_python.py
	@echo "Setting up $(VENV); torch is large, so this takes a minute or more."
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -qq -r scripts/venv.txt -r scripts/remote-tests.txt
	$(PY) -m pip install -qq --no-deps -r scripts/venv-no-deps.txt
	touch $@

# A plain install, not an editable one: tests see what users get.  The kept build folder makes it incremental.
$(INSTALLED): $(VENV)/.ready $(PACKAGE_FILES) | system
	$(PY) -m pip install -qq --no-build-isolation --no-deps --force-reinstall \
		-Cbuild-dir=build/py .
	touch $@

$(CONFIGURED): $(VENV)/.ready | system
	rm -f build/.configured-*
	$(MESON) setup build $(if $(wildcard build/build.ninja),--reconfigure) -Dtests=true -Dwerror=$(WERROR)
	touch $@

# --- tests ---

test: test-c test-python

test-c: $(CONFIGURED) | system
	$(MESON) compile -C build
	$(MESON) test -C build --no-rebuild --print-errorlogs

test-python: test-c $(INSTALLED) | system-test
	DRAPPS_BUILD=$(abspath build) $(PY) -m pytest -n $(TEST_JOBS) --dist loadfile

demo: $(INSTALLED)
	$(PY) examples/demo.py

check-all: test check-compilers check-sanitizers check-fuzz check-stress check-arm-if-there
	@echo "check-all: everything passed"

check-compilers: $(VENV)/.ready | system-check
	@for cc in $(CHECK_COMPILERS); do scripts/check-build $$cc plain || exit 1; done
	@scripts/check-build $(firstword $(CHECK_COMPILERS)) minimal

check-sanitizers: $(VENV)/.ready | system-check
	@for cc in $(CHECK_COMPILERS); do \
		scripts/check-build $$cc asan && scripts/check-build $$cc tsan || exit 1; done

check-fuzz: $(VENV)/.ready | system-check
	tests/fuzz/run.sh $(FUZZ_MINUTES)

check-stress: $(INSTALLED)
	$(PY) -m pytest tests/stress
	PACK_KILLS=50 PACK_FLIPS=1000 CACHE_KILLS=50 PLAN_KILLS=50 \
		$(PY) -m pytest tests/python/test_packing_damage.py tests/python/test_killed.py

check-arm: $(VENV)/.ready
	@scripts/check-arm

check-arm-if-there: $(VENV)/.ready
	@scripts/check-arm if-there

# --- results to take away ---

# Judges the promises of docs/benchmarks.md.  Other loaders need environments of their own: drapps bench setup --help.
bench: $(INSTALLED)
	@test -n "$(DATA)" || { echo "make bench DATA=folder-of-images [PHOTOS=folder-of-large-photos]"; exit 2; }
	test -f build-bench/build.ninja || $(MESON) setup build-bench -Dbench=true
	$(MESON) compile -C build-bench
	$(PY) -m benchmarks.run_all --data "$(DATA)" $(if $(PHOTOS),--photos "$(PHOTOS)") \
		--limit build-bench/benchmarks/c/limit --save build-bench/results

# Warnings and links that lead nowhere are errors.  What it needs is added to $(VENV) when it is first made.
$(VENV)/.docs: scripts/venv-docs.txt $(VENV)/.ready
	$(PY) -m pip install -qq -r scripts/venv-docs.txt
	touch $@

docs: $(INSTALLED) $(VENV)/.docs
	$(PY) docs/site/build.py build/docs

wheel: $(VENV)/.ready | system
	scripts/wheel

# Meson is all that it needs of $(VENV): no torch.
install: | system
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	test -x $(MESON) || $(PY) -m pip install -qq $$(grep -E '^(meson|ninja)==' scripts/venv.txt)
	$(MESON) setup build-install $(if $(wildcard build-install/build.ninja),--reconfigure) --prefix=$(PREFIX)
	$(MESON) compile -C build-install
	$(MESON) install -C build-install --no-rebuild

lint: $(VENV)/.ready
	$(PY) -m ruff check -q .
	clang-format --dry-run -Werror $$(git ls-files '*.c' '*.h')

# Slower checks: types of the Python package, and mistakes in the C files that compilers do not warn about.
lint-all: lint
	$(PY) -m mypy
	cppcheck --quiet -j2 --std=c11 --enable=warning,performance,portability --error-exitcode=1 -Iinclude -Isrc \
		-D_GNU_SOURCE --suppressions-list=scripts/cppcheck-suppressions.txt src tools benchmarks/c

format: $(VENV)/.ready
	clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	rm -rf build build-* dist $(INSTALLED)

distclean: clean
	rm -rf $(VENV)
