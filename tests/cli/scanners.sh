#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# weft replicas and weft scanners, through a server and on its store: two servers share a store, and
# one of them dies.

manual=$(cd "$(dirname "$0")/../.." && pwd)/docs/operations.md
source "$(dirname "$0")/common.bash"

second_pid=
end_second() {
    if [[ -n $second_pid ]]; then
        kill "-${1:-KILL}" "$second_pid" 2>/dev/null || true
        wait "$second_pid" 2>/dev/null || true
        second_pid=
    fi
}
trap 'end_second; leave' EXIT

# until_has PATTERN NAME WORD...: runs it until a line of its output fits, for 40 s at most.
until_has() {
    local pattern=$1 name=$2 i
    shift 2
    for ((i = 0; i < 200; i++)); do
        run "$@"
        if grep -Eq -e "$pattern" <<<"$out"; then
            ok "$name"
            return
        fi
        sleep 0.2
    done
    bad "$name" "wanted: $pattern" "got: $out" "$err"
}

fetch() {
    python3 -c 'import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())' "$1"
}

# ---- a store without servers ----

exits 0 'migrate of a new store' "$weft" migrate --store "$store"
exits 0 'replicas of a new store' "$weft" replicas --store "$store" --json
is "$out" '{"items":[]}' 'there are none'
exits 0 'scanners of a new store' "$weft" scanners --store "$store" --json
is "$out" '{"items":[]}' 'there are none'
exits 0 'scanners run on a store without a server' "$weft" scanners run delayed_promoter --store \
    "$store" --json
json "$out" 'v["name"] == "delayed_promoter" and v["more"] is False' 'prints a report'
exits 2 'scanners run without a name' "$weft" scanners run --store "$store"
exits 2 'scanners with an unknown verb' "$weft" scanners walk --store "$store"
exits 3 'scanners run with a mistyped name' "$weft" scanners run lease_expiri --store "$store"
has "$err" "did you mean 'lease_expiry'" 'the error suggests the nearest name'
has "$err" 'there are: intake, lease_expiry' 'the error lists all names'

# ---- one server ----

export WEFT_STORE=$store
serve_hello
unset WEFT_STORE
if [[ -z $url ]]; then
    bad 'a server starts' "$(cat serve.log)"
    plan
    exit 1
fi
ok 'a server starts'
until_has 'alive' 'the row of the server is there' "$weft" replicas --store "$store"
export WEFT_SERVER=$url
exits 0 'replicas of a server' "$weft" replicas
has "$out" '^REPLICA +HOST +PID +VERSION +STATE +UP +SEEN +URL +CARRIES +SCANNERS$' \
    'the table has titles'
has "$out" "^[0-9a-f]{8} +[^ ]+ +$server_pid +[0-9.]+ +alive .* $url +http +all\$" \
    'lists the server itself'
exits 0 'replicas --color always' "$weft" replicas --color always
has "$out" $'\033\[32malive' 'alive is green'
exits 0 'replicas --json' "$weft" replicas --json
json "$out" '[(i["state"], i["carries"]) for i in v["items"]] == [("alive", ["http"])]' \
    'has one replica that is alive, and carries calls out'

exits 0 'scanners of a server' "$weft" scanners
has "$out" '^SCANNER +HOST +REPLICA +EVERY +LAST +TOOK +LAG +ONLY +COUNTED +ERROR$' \
    'the table has titles'
until_has '^intake .* 1 s +(now|[0-9]+ s ago) +[0-9]+ ms' 'the intake runs' "$weft" scanners
exits 0 'scanners --json of a server' "$weft" scanners --json
json "$out" 'v["items"][0]["name"] == "intake" and v["items"][0]["enabled"] is True' \
    'the first scanner is intake, and it is enabled'
names=$(python3 -c 'import json, sys
print(*(i["name"] for i in json.loads(sys.argv[1])["items"]))' "$out")
exits 0 'scanners of the store' "$weft" scanners --store "$store" --json
is "$(python3 -c 'import json, sys
print(*(i["name"] for i in json.loads(sys.argv[1])["items"]))' "$out")" "$names" \
    'scanners of the store are the same as the scanners of the server'
for name in $names; do
    exits 0 "scanners run $name" "$weft" scanners run "$name"
    has "$out" "^$name: .* \([0-9.]+ m?s\)" 'prints a report'
done
exits 0 'scanners run --json' "$weft" scanners run intake --json
json "$out" 'v["name"] == "intake" and v["duration_ms"] >= 0 and "counters" in v' \
    'the report is an object'

lists() {
    grep -c '^{"items":' watch.txt || true
}
: >watch.txt
timeout 60 "$weft" scanners --watch=100ms --json >>watch.txt 2>/dev/null &
watcher=$!
for ((i = 0; i < 1000 && $(lists) <= 3; i++)); do sleep 0.05; done
if (($(lists) > 3)); then ok 'scanners --watch --json prints a line again and again'; else
    bad 'a list again and again' "$(wc -l watch.txt)"
fi
kill "$watcher"
wait "$watcher" 2>/dev/null || true
lacks "$(cat watch.txt)" $'\033' 'scanners --watch in a pipe prints no codes for a terminal'

run "$weft" doctor --store "$store" # which finds fault with the database of the tests
has "$out" '^ok +replicas +alive: 1' 'doctor counts one living replica'
has "$out" '^ok +scanner_coverage ' 'doctor finds that every scanner runs'

# ---- what the manual says ----

exits 0 'scanners --json of a server, again' "$weft" scanners --json
if wrong=$(python3 - "$manual" "$out" <<'END'
import json, re, sys
text = open(sys.argv[1], encoding="utf-8").read()
rows = {cell[0].strip("` "): [c.strip() for c in cell[1:]] for cell in
        (line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `"))}
for item in json.loads(sys.argv[2])["items"]:
    said = rows.get(item["name"], ["nothing", ""])
    real = [f"{item['interval_ms'] // 1000} s", str(item["batch"])]
    if said[:2] != real:
        sys.exit(f"{item['name']}: the manual says {said[:2]}, it is {real}")
END
); then ok 'are in the manual as they are'; else bad 'are in the manual as they are' "$wrong"; fi
metrics=$(fetch "$url/metrics")
for name in $(grep -o 'weft_scanner_[a-z_]*' "$manual" | sort -u); do
    has "$metrics" "^# TYPE $name " "the metric $name exists"
done

# ---- another one, which dies ----

"$weft" serve --store "$store" --listen 127.0.0.1:0 >second.txt 2>second.log &
second_pid=$!
until_has " $second_pid .* alive" 'a second server is on the list' "$weft" replicas
exits 0 'scanners of two servers' "$weft" scanners --json
json "$out" 'len({i["replica"] for i in v["items"]}) == 2' 'has the scanners of both'
dead=$second_pid
end_second KILL
until_has " $dead +[^ ]+ +dead " 'a killed replica is dead' "$weft" replicas
has "$out" "^[0-9a-f]{8} +[^ ]+ +$server_pid .* alive" \
    'after the death of one server the other is listed as alive'
exits 0 'scanners after the death of a server' "$weft" scanners --json
json "$out" 'len({i["replica"] for i in v["items"]}) == 1' 'has the scanners of the living one'
run "$weft" doctor --store "$store" # which finds fault with the database of the tests
has "$out" "^warn +replicas .* pid $dead is dead" 'doctor names the dead server'

kill "$server_pid"
wait "$server_pid" || true
lacks "$("$weft" replicas --store "$store")" " $server_pid " \
    'a server that stops in order leaves the list'
server_pid=

# ---- a server without scanners, alone ----

export WEFT_STORE=$store WEFT_SCANNERS=none
serve_hello
unset WEFT_STORE WEFT_SCANNERS
if [[ -z $url ]]; then bad 'serve starts' "$(cat serve.log)"; else ok 'serve starts'; fi
export WEFT_SERVER=$url
until_has '"warning".*intake, lease_expiry' 'the server is ready and warns' fetch "$url/readyz"
exits 0 'doctor of a server without scanners' "$weft" doctor
has "$out" '^warn +ready .*: intake, lease_expiry' 'has the warning of the server'
exits 0 'scanners of a server without scanners' "$weft" scanners
has "$out" '^intake .* off +- +- ' 'every scanner is off'
exits 0 'replicas of a server without scanners' "$weft" replicas
has "$out" " $server_pid .* none\$" 'SCANNERS is none'
exits 1 'doctor of the store without scanners' "$weft" doctor --store "$store"
has "$out" '^bad +scanner_coverage .*: intake, lease_expiry' 'a scanner that runs nowhere is bad'
exits 0 'scanners run on a server without scanners' "$weft" scanners run intake
has "$out" '^intake: ' 'the pass runs'
plan
