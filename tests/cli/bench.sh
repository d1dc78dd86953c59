#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# weft bench, weft work and weft doctor against a server. Figures are not looked at: what was
# submitted must be completed, and nothing may be left behind.

source "$(dirname "$0")/common.bash"

exits 4 'bench without a server' "$weft" bench --server http://127.0.0.1:1
has "$err" '^weft: cannot reach a server at 127.0.0.1:1' 'the error says that it is not reached'
has "$err" '^hint: start a server with .weft serve.' 'the hint names the command to start one'
exits 2 'bench with an unknown mode' "$weft" bench --mode fast
exits 2 'bench --mode single with --batch' "$weft" bench --mode single --batch 5
exits 2 'bench with an https URL' "$weft" bench --server https://127.0.0.1:1
has "$err" 'plain HTTP' 'the error says that it speaks plain HTTP'

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

exits 0 'bench --mode bulk' "$weft" bench --seconds 1s --warmup 50ms --batch 20 --json
json "$out" 'v["mode"] == "bulk" and v["adds_up"] and v["errors"] == 0' 'the numbers add up'
json "$out" 'v["per_s"] > 0 and v["p50_ms"] > 0 and v["p99_ms"] >= v["p50_ms"]' \
    'has rates and latencies'
json "$out" 'v["batch"] == 20 and v["connections"] == 8 and v["embedded"] is None' 'has the plan'
json "$out" 'all(v[k]["count"] > 0 for k in ("submit", "claim", "complete"))' \
    'has latencies of each call'
exits 0 'bench --mode single' "$weft" bench --mode single --seconds 500ms --warmup 50ms --json -c 16
json "$out" 'v["mode"] == "single" and v["adds_up"] and v["errors"] == 0' 'the numbers add up'
exits 0 'bench --mode waiting' "$weft" bench --mode waiting --seconds 500ms --warmup 50ms --json \
    -c 8
json "$out" 'v["mode"] == "waiting" and v["adds_up"] and v["errors"] == 0' 'the numbers add up'
json "$out" 'v["signal"]["count"] > 0 and v["suspend"]["count"] > 0' 'executions were suspended'
exits 0 'bench --mode latency' "$weft" bench --mode latency --tries 20 --json
json "$out" 'v["adds_up"] and v["errors"] == 0 and v["claim"]["count"] == 20' 'the numbers add up'
exits 0 'bench --mode flow' "$weft" bench --mode flow --nodes 4 --seconds 1s --warmup 50ms --json \
    -c 8
json "$out" 'v["mode"] == "flow" and v["adds_up"] and v["errors"] == 0' 'the numbers add up'
json "$out" 'v["per_s"] > 0 and v["hop"]["count"] > 0 and v["nodes"] == 4' 'has flows and hops'
json "$out" 'v["submitted"] % 4 == 0 and v["flows_at_once"] == 8' 'every flow was completed'
exits 0 'bench --mode flow --batch' "$weft" bench --mode flow --flows 40 --batch 10 --seconds \
    500ms -c 4
has "$out" '^flow: chains of 10 nodes, 40 at once, up to 10 per claim, 4 connections' \
    'the first line has the plan'
has "$out" '^[0-9]+ flows/s through the server' 'a line has the rate'
has "$out" '^hop +[0-9.]+ ' 'the table has a row for the hop'
exits 0 'bench with --store beside the server' "$weft" bench --batch 5 --seconds 1s --warmup 0s \
    --store "$store" --json
json "$out" 'v["embedded"]["per_s"] > 0 and v["store"] == "sqlite"' \
    'has the rate in process and the ratio'
exits 0 'bench for people' "$weft" bench --seconds 200ms --warmup 10ms --payload 0
has "$out" '^[0-9]+ lifecycles/s through the server' 'the first line has the plan'
has "$out" '^all [0-9]+ submitted executions were completed, none is left$' \
    'the last line says that the numbers add up'
for state in ready delayed running blocked; do
    exits 0 "ls of $state executions after bench" "$weft" ls --state "$state" --json
    json "$out" 'v["items"] == []' 'there are none left'
done

# ---- work ----

first=$("$weft" submit -k upper '"a"')
second=$("$weft" submit -k other '"b"')
exits 0 'work --drain through a server' "$weft" work --drain --concurrency 2 -- tr a-z A-Z
has "$out" "^done  $first upper" 'executions of every kind are done'
has "$out" "^done  $second other" 'kinds need not be named'
is "$("$weft" show "$first" --result)" '"A"' 'results are stored'

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
is "$status" 0 'work through a server: the command of a cancelled execution ends'
has "$(cat work.out)" "^lost  $id stuck [0-9.]+ s cancelled$" \
    'work through a server: the status line says that it was cancelled'

# ---- doctor ----

exits 0 'doctor of a running server' "$weft" doctor
has "$out" '^ok +server ' 'the server lives'
has "$out" '^ok +ready ' 'the server is ready'
has "$out" 'weft doctor --store' '--store is named for the other checks'

plan
