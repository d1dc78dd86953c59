#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# weft bench, weft work and weft doctor against a server. Figures are not looked at: what was
# submitted must be completed, and nothing may be left behind.

source "$(dirname "$0")/common.bash"

exits 4 'no server' "$weft" bench --server http://127.0.0.1:1
has "$err" '^weft: cannot reach a server at 127.0.0.1:1' 'is told'
has "$err" '^hint: start a server with .weft serve.' 'with what to do'
exits 2 'a mode that is none' "$weft" bench --mode fast
exits 2 'a batch for single requests' "$weft" bench --mode single --batch 5
exits 2 'TLS' "$weft" bench --server https://127.0.0.1:1
has "$err" 'plain HTTP' 'is not spoken'

"$weft" serve --hello --listen 127.0.0.1:0 --store "$store" >serve.out 2>serve.err </dev/null &
server_pid=$!
url=
for _ in {1..1200}; do
    url=$(grep -o 'http://[0-9.:]*' serve.out | head -n 1 || true)
    [[ -z $url ]] || break
    sleep 0.05
done
has "$url" '^http://127' 'a server listens'
export WEFT_SERVER=$url

# ---- bench ----

exits 0 'bulk' "$weft" bench --seconds 1s --warmup 50ms --batch 20 --json
json "$out" 'v["mode"] == "bulk" and v["adds_up"] and v["errors"] == 0' 'adds up'
json "$out" 'v["per_s"] > 0 and v["p50_ms"] > 0 and v["p99_ms"] >= v["p50_ms"]' 'with figures'
json "$out" 'v["batch"] == 20 and v["connections"] == 8 and v["embedded"] is None' 'and its plan'
json "$out" 'all(v[k]["count"] > 0 for k in ("submit", "claim", "complete"))' 'for each request'
exits 0 'single' "$weft" bench --mode single --seconds 500ms --warmup 50ms --json -c 16
json "$out" 'v["mode"] == "single" and v["adds_up"] and v["errors"] == 0' 'adds up'
exits 0 'latency' "$weft" bench --mode latency --tries 20 --json
json "$out" 'v["adds_up"] and v["errors"] == 0 and v["claim"]["count"] == 20' 'adds up'
exits 0 'flow' "$weft" bench --mode flow --nodes 4 --seconds 1s --warmup 50ms --json -c 8
json "$out" 'v["mode"] == "flow" and v["adds_up"] and v["errors"] == 0' 'adds up'
json "$out" 'v["per_s"] > 0 and v["hop"]["count"] > 0 and v["nodes"] == 4' 'with flows and hops'
json "$out" 'v["submitted"] % 4 == 0 and v["flows_at_once"] == 8' 'all of them whole'
exits 0 'flows by tens' "$weft" bench --mode flow --flows 40 --batch 10 --seconds 500ms -c 4
has "$out" '^flow: chains of 10 nodes, 40 at once, up to 10 per claim, 4 connections' 'for people'
has "$out" '^[0-9]+ flows/s through the server' 'what it did'
has "$out" '^hop +[0-9.]+ ' 'and how long a hop takes'
exits 0 'in process beside it' "$weft" bench --batch 5 --seconds 1s --warmup 0s \
    --store "$store" --json
json "$out" 'v["embedded"]["per_s"] > 0 and v["store"] == "sqlite"' 'is told'
exits 0 'for people' "$weft" bench --seconds 200ms --warmup 10ms --payload 0
has "$out" '^[0-9]+ lifecycles/s through the server' 'what it did'
has "$out" '^all [0-9]+ submitted executions were completed, none is left$' 'and that it adds up'
for state in ready delayed running blocked; do
    exits 0 "$state ones" "$weft" ls --state "$state" --json
    json "$out" 'v["items"] == []' 'there are none'
done

# ---- work ----

first=$("$weft" submit -k upper '"a"')
second=$("$weft" submit -k other '"b"')
exits 0 'work through a server' "$weft" work --drain --concurrency 2 -- tr a-z A-Z
has "$out" "^done  $first upper" 'every kind'
has "$out" "^done  $second other" 'without being named'
is "$("$weft" show "$first" --result)" '"A"' 'with results'

id=$("$weft" submit -k stuck 1)
"$weft" work --lease 1s --kill-after 100ms --drain -- \
    sh -c 'echo up >&2; exec tail -f /dev/null' >work.out 2>work.err </dev/null &
worker=$!
for _ in {1..1200}; do
    ! grep -q up work.err || break
    sleep 0.05
done
"$weft" cancel "$id" >/dev/null
status=0
wait "$worker" || status=$?
is "$status" 0 'a cancelled command ends'
has "$(cat work.out)" "^lost  $id stuck [0-9.]+ s cancelled$" 'and is told'

# ---- doctor ----

exits 0 'doctor' "$weft" doctor
has "$out" '^ok +server ' 'the server lives'
has "$out" '^ok +ready ' 'and is ready'
has "$out" 'weft doctor --store' 'for the rest it asks for the store'

plan
