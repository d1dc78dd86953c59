#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# weft doctor on stores that are well and on some that are not.

source "$(dirname "$0")/common.bash"

exits 1 'doctor of a file that does not exist' "$weft" doctor --store "$store"
has "$out" '^bad +store +there is no store at sqlite:' 'the store is bad'
has "$out" '-> check the path or URL; .weft serve.' 'a hint names the command that makes a store'
if [[ -e $scratch/weft.db ]]; then
    bad 'doctor of a file that does not exist creates none'
else
    ok 'doctor of a file that does not exist creates none'
fi

: >"$scratch/weft.db"
exits 1 'doctor of an empty file' "$weft" doctor --store "$store"
has "$out" '^bad +store +there is no store at sqlite:' 'the store is bad'
if [[ -s $scratch/weft.db ]]; then
    bad 'doctor of an empty file leaves it empty'
else
    ok 'doctor of an empty file leaves it empty'
fi

exits 0 'migrate of the file' "$weft" migrate --store "$store"
exits 0 'doctor of a migrated store' "$weft" doctor --store "$store"
has "$out" '^ok +store ' 'the store can be opened'
has "$out" '^ok +invariants ' 'the store is whole'
lacks "$out" '^bad ' 'nothing is bad'
lacks "$out" $'\033' 'no colours in a pipe'
exits 0 'doctor --color always' "$weft" doctor --store "$store" --color always
has "$out" $'^\033\[32mok' 'ok is green'
exits 0 'doctor --json' "$weft" doctor --store "$store" --json
json "$out" 'v["ok"] is True and len(v["items"]) > 3' 'there is a list of findings'
json "$out" 'all(i["level"] in ("ok", "warn", "bad") for i in v["items"])' \
    'each finding has a level'

echo 'this is no database, but long enough to be taken for one' >"$scratch/weft.db"
rm -f "$scratch"/weft.db-*
exits 1 'doctor of a file that is no database' "$weft" doctor --store "$store"
has "$out" '^bad ' 'the store is bad'

# A port that was free a moment ago: no server listens there.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
exits 1 'doctor of a server that does not run' "$weft" doctor --server "http://127.0.0.1:$port"
has "$out" '^bad +server ' 'the server is bad'
has "$out" 'weft serve' 'a hint names the command that starts a server'
exits 1 'doctor --json of a server that does not run' "$weft" doctor --server \
    "http://127.0.0.1:$port" --json
json "$out" 'v["ok"] is False and v["items"][0]["what"] == "server"' 'ok is false'

plan
