#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The first example, twice on the same store: the second run finds its jobs done. And the same over
# a server.

set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

results='job 1 says: Hello, Ada!
job 2 says: Hello, Grace!
job 3 says: Hello, Edsger!'

run_twice() {
    local url=$1 first second
    first=$("$WEFT_BUILD/examples/hello" "$url")
    second=$("$WEFT_BUILD/examples/hello" "$url")
    if [[ $(grep -c 'is submitted$' <<<"$first") -ne 3 ||
        $(grep 'says' <<<"$first") != "$results" ]]; then
        printf 'hello: the first run on %s printed\n%s\n' "$url" "$first" >&2
        exit 1
    fi
    if [[ $(grep -c 'is known already$' <<<"$second") -ne 3 ||
        $(grep 'says' <<<"$second") != "$results" ]]; then
        printf 'hello: the second run on %s printed\n%s\n' "$url" "$second" >&2
        exit 1
    fi
}

run_twice "sqlite:$scratch/hello.db"
(cd "$scratch" && "$WEFT_BUILD/examples/hello" | grep -q 'on sqlite:hello.db')
if [[ -n ${WEFT_TEST_PG:-} ]]; then
    separator='?'
    [[ $WEFT_TEST_PG != *\?* ]] || separator='&'
    run_twice "$WEFT_TEST_PG${separator}weft_schema=hello_$$"
fi

# The server says where it listens in its first line. The other lines are not read: it says few.
exec {log}< <(exec "$WEFT_BUILD/weft" serve --listen 127.0.0.1:0 \
    --store "sqlite:$scratch/served.db" 2>&1)
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT
read -r -t 20 line <&"$log"
url=$(grep -o 'http://[0-9.:]*' <<<"$line")
run_twice "$url"
kill "$server"

if "$WEFT_BUILD/examples/hello" nonsense: 2>"$scratch/error"; then
    echo 'hello: a bad URL was accepted' >&2
    exit 1
fi
grep -q '^hello: ' "$scratch/error"
