#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The library as others meet it: it exports what the public headers declare and nothing else, the
# headers are good C++, and a program builds against an installed tree by pkg-config alone.

set -euo pipefail
export LC_ALL=C

root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Every function of the public headers: a name in front of a parenthesis, comments taken out.
cat "$root"/include/weft/*.h |
    tr '\n' ' ' | sed 's|/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/||g; s/;/;\n/g' |
    grep -o 'WEFT_EXPORT .*' | grep -v 'define WEFT_EXPORT' |
    sed 's/WEFT_EXPORT//; s/WEFT_MUST_CHECK//' |
    grep -o '\bweft_[a-z0-9_]* *(' | grep -v '_t (' | tr -d ' (' | sort -u >"$scratch/declared"
nm -D --defined-only "$WEFT_BUILD/libweft.so" | awk '{ print $3 }' | sort -u >"$scratch/exported"
if ! diff "$scratch/declared" "$scratch/exported"; then
    echo 'library: < is declared and not exported, > is exported and not declared' >&2
    exit 1
fi
[[ $(wc -l <"$scratch/declared") -gt 40 ]]

compilers=()
for compiler in g++ clang++; do
    ! command -v "$compiler" >/dev/null || compilers+=("$compiler")
done
if [[ ${#compilers[@]} -eq 0 ]]; then
    echo 'library: there is neither g++ nor clang++' >&2
    exit 1
fi
for header in weft admin wait base; do
    echo "#include <weft/$header.h>" >"$scratch/$header.cc"
    for compiler in "${compilers[@]}"; do
        "$compiler" -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$root/include" \
            "$scratch/$header.cc"
    done
done

if ! DESTDIR=$scratch/tree meson install -C "$WEFT_BUILD" --no-rebuild >"$scratch/log" 2>&1; then
    cat "$scratch/log" >&2
    exit 1
fi
# Found where pkg-config looks by itself, in the tree instead of in /.
PKG_CONFIG_PATH=$(pkg-config --variable=pc_path pkg-config | tr ':' '\n' |
    sed "s|^|$scratch/tree|" | paste -s -d ':')
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR=$scratch/tree
read -ra flags <<<"$(pkg-config --cflags --libs weft)"
# A program that uses a build must have the compiler and the sanitizers of that build.
read -ra compile <<<"$(python3 - "$WEFT_BUILD/compile_commands.json" <<'END'
import json, shlex, sys
for unit in json.load(open(sys.argv[1], encoding="utf-8")):
    if unit["file"].endswith("examples/hello.c"):
        words = shlex.split(unit["command"])
        if words[0].endswith("ccache"):
            words = words[1:]
        print(words[0], *(word for word in words if word.startswith("-fsanitize")))
END
)"
"${compile[@]}" -std=c17 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -o "$scratch/hello" \
    "$root/examples/hello.c" "${flags[@]}"
# And where ld.so looks: without the tree in front.
lib=$(PKG_CONFIG_SYSROOT_DIR='' pkg-config --variable=libdir weft)
if ! grep -rqxF "$lib" /etc/ld.so.conf /etc/ld.so.conf.d; then
    echo "library: ld.so does not look into $lib" >&2
    exit 1
fi
cd "$scratch"
LD_LIBRARY_PATH=$scratch/tree$lib ./hello | grep -q 'job 3 says: Hello, Edsger!'
