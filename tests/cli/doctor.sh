#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# weft doctor on stores that are well and on some that are not.

source "$(dirname "$0")/common.bash"

exits 1 'a file that is not there' "$weft" doctor --store "$store"
has "$out" '^bad +store +there is no store at sqlite:' 'is bad'
has "$out" '-> check the path or URL; .weft serve.' 'and it says what to do'
if [[ -e $scratch/weft.db ]]; then bad 'nothing is made'; else ok 'nothing is made'; fi

: >"$scratch/weft.db"
exits 1 'an empty file' "$weft" doctor --store "$store"
has "$out" '^bad +store +there is no store at sqlite:' 'is no store either'
if [[ -s $scratch/weft.db ]]; then bad 'and stays empty'; else ok 'and stays empty'; fi

exits 0 'migrated' "$weft" migrate --store "$store"
exits 0 'a store that is well' "$weft" doctor --store "$store"
has "$out" '^ok +store ' 'can be opened'
has "$out" '^ok +invariants ' 'is whole'
lacks "$out" '^bad ' 'and has nothing bad'
lacks "$out" $'\033' 'without colours where nobody looks'
exits 0 'with colours' "$weft" doctor --store "$store" --color always
has "$out" $'^\033\[32mok' 'which are green'
exits 0 'for programs' "$weft" doctor --store "$store" --json
json "$out" 'v["ok"] is True and len(v["items"]) > 3' 'a list'
json "$out" 'all(i["level"] in ("ok", "warn", "bad") for i in v["items"])' 'of levels'

echo 'this is no database, but long enough to be taken for one' >"$scratch/weft.db"
rm -f "$scratch"/weft.db-*
exits 1 'a file that is something else' "$weft" doctor --store "$store"
has "$out" '^bad ' 'is bad'

# A port that was free a moment ago: nobody listens there.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
exits 1 'a server that is not there' "$weft" doctor --server "http://127.0.0.1:$port"
has "$out" '^bad +server ' 'is bad'
has "$out" 'weft serve' 'and it says how to start one'
exits 1 'for programs' "$weft" doctor --server "http://127.0.0.1:$port" --json
json "$out" 'v["ok"] is False and v["items"][0]["what"] == "server"' 'it is told apart'

plan
