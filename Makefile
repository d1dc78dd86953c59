# SPDX-License-Identifier: Apache-2.0
#
# The front door. Meson does the building; see `make help`.

BUILD  = build
ASAN   = build-asan
FUZZ   = build-fuzz
C_DIRS = include src tests examples bench
C_ALL  = $(shell find $(C_DIRS) -name '*.[ch]' 2>/dev/null | LC_ALL=C sort)
C_UNIT = $(filter %.c,$(C_ALL))

ASAN_OPTIONS_MESON = -Db_sanitize=address,undefined -Db_lundef=false \
	-Dc_args=-fno-sanitize-recover=all

FUZZ_OPTIONS_MESON = -Dfuzz=true -Dexamples=false -Db_sanitize=address,undefined -Db_lundef=false \
	-Dc_args='-fno-sanitize-recover=all -fsanitize=fuzzer-no-link'
FUZZ_SECONDS = 60

.PHONY: all configured help run example test fresh soak fuzz asan check bench bench-http format install clean

all: configured
	@ninja -C $(BUILD)

configured:
	@tools/setup build
	@tools/configure $(BUILD)

help:
	@echo 'make          build the library, the examples and the tests in $(BUILD)/'
	@echo 'make run      build and run a server; it says what to try next'
	@echo 'make example  build and run the first example of the library'
	@echo 'make test     build with gcc, and with clang and sanitizers; run all tests in both'
	@echo 'make fresh    whether all that works on a machine with nothing but make and git (ARGS: stages)'
	@echo 'make soak     the tests, with the long tests long'
	@echo 'make fuzz     look for inputs that break the parsers, FUZZ_SECONDS=60 each (ARGS: which)'
	@echo 'make check    formatting, clang-tidy, cppcheck, layers, house rules, documents'
	@echo 'make bench    run the benchmarks against a durable PostgreSQL (ARGS=... are passed on)'
	@echo 'make bench-http  the same through servers, with the library in process beside them'
	@echo 'make format   put the sources into their format'
	@echo 'make install  install command, manual, library and header (DESTDIR is honoured)'
	@echo 'make clean    remove the build folders'

run: configured
	@ninja -C $(BUILD) weft
	@exec $(BUILD)/weft serve --store sqlite:$(BUILD)/weft.db --hello $(ARGS)

example: configured
	@ninja -C $(BUILD) examples/hello
	@cd $(BUILD) && examples/hello

asan:
	@tools/setup build test
	@CC=clang tools/configure $(ASAN) $(ASAN_OPTIONS_MESON)
	@ninja -C $(ASAN)

test: all asan
	@tools/run_tests $(BUILD) $(ASAN)

fresh:
	@tools/setup fresh
	@ONLY='$(ONLY)' tools/fresh $(ARGS)

soak: all asan
	@WEFT_SOAK=1 tools/run_tests $(BUILD) $(ASAN)

fuzz:
	@tools/setup build test
	@CC=clang tools/configure $(FUZZ) $(FUZZ_OPTIONS_MESON)
	@tools/fuzz $(FUZZ) $(FUZZ_SECONDS) $(ARGS)

check: all
	@tools/setup check
	@clang-format --dry-run -Werror $(C_ALL)
	@tools/checksrc
	@tools/checkdocs
	@tools/layers
	@printf '%s\n' $(C_UNIT) | xargs -P 2 -n 4 clang-tidy -p $(BUILD) --quiet
	@cppcheck -q -j 2 --error-exitcode=1 --inline-suppr --std=c11 -D_GNU_SOURCE \
		--enable=warning,performance,portability --suppress=missingIncludeSystem \
		-Iinclude -Isrc -I$(BUILD) src

bench-http: BENCH = --case http --seconds 10
bench bench-http: all
	@tools/setup bench
	@trap 'tools/pg stop $(BUILD)/bench-pg' EXIT; tools/pg start --durable $(BUILD)/bench-pg && \
		WEFT_TEST_PG="$$(tools/pg url $(BUILD)/bench-pg)" $(BUILD)/bench/bench --dir $(BUILD) \
		$(BENCH) $(ARGS)

format:
	@tools/setup check
	@clang-format -i $(C_ALL)

install: all
	@meson install -C $(BUILD) --no-rebuild

clean:
	@rm -rf $(BUILD) $(ASAN) $(FUZZ)
