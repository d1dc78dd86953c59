#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# weft serve: it starts from nothing, says what to try, answers, and stops as it is told to. The
# commands speak to it as they speak to a store.

source "$(dirname "$0")/common.bash"

# start OPTION...: on a free port; url and server_pid are set.
start() {
    : >hello.txt
    "$weft" serve --listen 127.0.0.1:0 --hello "$@" >hello.txt 2>serve.log &
    server_pid=$!
    url=
    for ((i = 0; i < 1200; i++)); do
        url=$(grep -o 'http://127.0.0.1:[0-9]*' hello.txt | head -n 1 || true)
        if [[ -n $url ]] || ! kill -0 "$server_pid" 2>/dev/null; then break; fi
        sleep 0.05
    done
}

# stop SIGNAL: the exit status is in status.
stop() {
    local i
    kill "-$1" "$server_pid"
    for ((i = 0; i < 1200; i++)); do
        kill -0 "$server_pid" 2>/dev/null || break
        sleep 0.05
    done
    status=0
    wait "$server_pid" || status=$?
    server_pid=
}

start
if [[ -z $url ]]; then
    bad 'it starts' "$(cat serve.log)"
    plan
    exit 1
fi
ok 'it starts from nothing'
has "$(cat hello.txt)" 'its store is sqlite:weft.db' 'with a file beside it'
is "$(grep -c "^  .*weft'\? [a-z]" hello.txt)" 3 'and says three things to try'
if [[ -s weft.db ]]; then ok 'the file is there'; else bad 'the file is there'; fi

export WEFT_SERVER=$url
exits 0 'submit' "$weft" submit --kind greet --key k1 '{"name":"Ada"}'
id=$out
exits 0 'ls' "$weft" ls
has "$out" "^$id +default +greet +ready" 'shows it'
exits 0 'show' "$weft" show "$id"
has "$out" '^payload +\{"name":"Ada"\}' 'with its payload'
exits 0 'the same key' "$weft" submit --kind greet --key k1 '{"name":"Ada"}'
is "$out" "$id" 'is the same execution'
exits 6 'the key with something else' "$weft" submit --kind greet --key k1 '{"name":"Bob"}'
for _ in 1 2 3; do
    "$weft" cancel "$id" >/dev/null
    "$weft" replay "$id" >/dev/null
done
exits 0 'its history' "$weft" show "$id" --json
json "$out" '[a["ended"] for a in v["attempts"]] == ["cancelled"] * 3' 'is kept'
get() {
    python3 -c 'import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())' "$1"
}
page=$(get "$url/v1/executions/$id/attempts?limit=2")
json "$page" 'len(v["items"]) == 2 and v["next"]' 'a page of it'
after=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["next"])' "$page")
page=$(get "$url/v1/executions/$id/attempts?limit=2&after=$after")
json "$page" 'len(v["items"]) == 1 and v["next"] is None' 'and the rest'
exits 0 'many' "$weft" submit --kind many --lane many --count 2500 '{}'
is "$(sort -u <<<"$out" | wc -l)" 2500 'are submitted'
exits 0 'ls --all' "$weft" ls --all --lane many --json
is "$(wc -l <<<"$out")" 2500 'all are listed'
exits 0 'cancel by filter' "$weft" cancel --lane many --yes
is "$out" 'cancelled 2500 executions' 'all are cancelled'
exits 0 'replay by id' "$weft" replay "$("$weft" ls --lane many --limit 1 --json |
    grep -o '[0-9a-f-]\{36\}' | head -n 1)"
exits 0 'lanes' "$weft" lanes many --pause --max-running 3 --json
json "$out" 'v["paused"] and v["max_running"] == 3' 'are set'
exits 0 'counts' "$weft" counts --json --lane many
counted many 'v["items"][0]["ready"] == 1' 'are counted'
exits 0 'counts at a server' "$weft" counts --lane many
has "$out" '^as of (now|[0-9.]+ s ago)$' 'tell their age'
exits 0 'workers' "$weft" workers --json
exits 3 'goodbye to one that is not there' "$weft" workers nobody --goodbye --json
held=$("$weft" submit --kind hold --lane held '{}')
curl -sf -d '{"worker":"w-1","lanes":["held"]}' "$url/v1/claims" >/dev/null
for ((i = 0; i < 600; i++)); do
    "$weft" workers --json | grep -q '"worker":"w-1"\|"name":"w-1"' && break
    sleep 0.05
done
exits 0 'a worker' "$weft" workers w-1
has "$out" '^w-1 +1 ' 'has its leases counted'
has "$out" "^$held +held +hold +1 " 'and what it holds'
exits 0 'with --json' "$weft" workers w-1 --json
json "$out" "[i['id'] for i in v['holds']] == ['$held']" 'as well'
exits 0 'revoke' "$weft" revoke "$held"
is "$out" "$held revoked" 'takes it away'
curl -sf -d '{"worker":"w-1","lanes":["held"]}' "$url/v1/claims" >/dev/null
exits 0 'goodbye' "$weft" workers w-1 --goodbye
is "$out" '1 lease released' 'releases what it holds'
exits 3 'and it is gone' "$weft" workers w-1
held=$("$weft" submit --kind hold --lane shared '{}')
curl -sf -d '{"worker":"leaver","lanes":["shared"]}' "$url/v1/claims" >/dev/null
for name in leaver ''; do
    "$weft" work --lane idle ${name:+--name "$name"} -- true >work.log 2>&1 </dev/null &
    worker_pid=$!
    listed=${name:-[^ ]*-$worker_pid-[0-9a-f]{8\}}
    for ((i = 0; i < 600; i++)); do
        "$weft" workers | grep -E "^$listed +[0-9]+ .* idle" >listed.txt && break
        sleep 0.05
    done
    has "$(cat listed.txt)" "^$listed " 'a worker that is idle is listed'
    kill "$worker_pid"
    wait "$worker_pid" || true
done
lacks "$("$weft" workers)" "-$worker_pid-" 'one that has stopped is not, at once'
exits 0 'a name that was given may be of two processes' "$weft" show "$held"
has "$out" 'running' 'the stop of one takes nothing from the other'
exits 4 'a wait' "$weft" show "$id" --wait=200ms
exits 0 'cancel' "$weft" cancel "$id"
exits 1 'a wait for what was cancelled' "$weft" show "$id" --wait
exits 3 'what is not there' "$weft" show 01932c07-5f3e-7a10-8c51-0123456789ab
exits 0 'the store has it too' env -u WEFT_SERVER "$weft" ls --store sqlite:weft.db --lane many

kill -HUP "$server_pid"
exits 0 'it goes on after SIGHUP' "$weft" ls
stop TERM
is "$status" 0 'SIGTERM: it ends with 0'
has "$(cat serve.log)" "msg=serving .*url=$url" 'the log says where it served'
has "$(cat serve.log)" 'msg=stopped' 'and that it stopped'
exits 4 'nobody is there' "$weft" ls
is "$out" '' 'and nothing is listed'
has "$err" "^weft: cannot reach $url: Connection refused$" 'is told'
has "$err" '^hint: start one with `weft serve`, or name a store with --store$' 'with a hint'

start --tokens --log-format json --access-log
export WEFT_SERVER=$url
exits 5 'without a token' "$weft" ls
has "$err" '^hint: .*--token' 'there is a hint'
has "$err" 'weft token create --store URL' 'that tells how the first token is made'
exits 5 'a token is not made without one' "$weft" token create --name test --scopes read
has "$err" 'weft token create --store URL' 'and the hint tells how'
# The first admin token comes from the store, all others from the server that WEFT_SERVER names.
db=$scratch/weft.db
exits 0 'the first token' env -u WEFT_SERVER "$weft" token create --store "sqlite:$db" --name me \
    --scopes admin --expires 90d
admin=$out
# A server hears of a new token within a second, and of a revoked one.
until_it_exits() {
    local i want=$1
    shift
    for ((i = 0; i < 300; i++)); do
        run "$@"
        if [[ $status -eq $want ]]; then break; fi
        sleep 0.1
    done
}
mkdir elsewhere
cd elsewhere # nothing here names a store, and none is made
until_it_exits 0 "$weft" token ls --token "$admin"
has "$out" ' me +\(any\) +admin .* in 89 d$' 'the server lists it'
export WEFT_TOKEN=$admin
exits 0 'token create through the server' "$weft" token create --name test --scopes read --json
json "$out" 'v["name"] == "test" and v["scopes"] == ["read"] and v["expires_at"] is None' 'as asked'
token=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["token"])' "$out")
id=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["id"])' "$out")
exits 0 'it is good at once' "$weft" ls --token "$token"
exits 0 'token rotate' "$weft" token rotate "$id" --grace 1h
has "$out" '^weft_[0-9]+_[A-Za-z0-9_-]{43}$' 'prints the new one, alone'
has "$err" '^token [0-9]+ for test, a new secret; the old one ends in 59 m; .* this once' \
    'and a note on stderr'
old=$token token=$out
exits 0 'the old one has its grace' "$weft" ls --token "$old"
exits 0 'token rotate for programs' "$weft" token rotate "$id" --grace 0 --json
json "$out" 'v["old_expires_at"] is None and v["rotated_at"]' 'without a grace'
exits 5 'then it is refused' "$weft" ls --token "$old"
has "$err" 'the token was rotated' 'with the reason'
exits 5 'as is the one after it' "$weft" ls --token "$token"
run "$weft" token rotate "$id" --json
token=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["token"])' "$out")
exits 5 'a reader makes no tokens' "$weft" token create --name x --scopes read --token "$token"
exits 3 'rotating what is not there' "$weft" token rotate 4711
exits 2 'rotating nothing' "$weft" token rotate
exits 0 'it is used' "$weft" ls --token "$token"
exits 0 'token list' "$weft" token list --json
json "$out" 'all(i["last_used_at"] for i in v["items"])' 'the server tells at once that it was'
unset WEFT_TOKEN
cd ..
is "$(ls -A elsewhere)" '' 'no store was made'
exits 0 'with a token' "$weft" ls --token "$token"
exits 0 'from the environment' env WEFT_TOKEN="$token" "$weft" ls
exits 5 'a token that may not' "$weft" submit -k x --token "$token"
# Upkeep writes uses down, every few seconds and not with each request.
used() {
    run env -u WEFT_SERVER "$weft" token ls --store "sqlite:$db" --json
    python3 -c 'import json,sys
sys.exit(not all(i["last_used_at"] for i in json.loads(sys.argv[1])["items"]))' "$out"
}
for ((i = 0; i < 300; i++)); do if used; then break; fi; sleep 0.1; done
if used; then ok 'the last use is written to the store'; else bad 'the last use' "$out"; fi
exits 0 'token revoke' "$weft" token revoke "$id" --token "$admin"
exits 5 'a revoked token is refused at once' "$weft" ls --token "$token"
exits 0 'one that another process revokes' env -u WEFT_SERVER "$weft" token revoke 1 \
    --store "sqlite:$db"
until_it_exits 5 "$weft" ls --token "$admin"
is "$status" 5 'is refused before long'
lacks "$(cat serve.log)" "$token" 'no secret is logged'
lacks "$(cat serve.log)" "${admin#weft_*_}" 'nor that of the admin'
has "$(cat serve.log)" '"msg":"a token was revoked","token":2,"name":"test","by_token":1' \
    'but who did what to which token'
if python3 -c '
import json, sys
for line in open("serve.log"):
    json.loads(line)'; then ok 'the log is JSON'; else bad 'the log is JSON' "$(cat serve.log)"; fi
stop INT
is "$status" 0 'SIGINT: it ends with 0'

# ---- scanners, and settings that are read anew ----

# says TEXT: the log does, before long.
says() {
    local i
    for ((i = 0; i < 1200; i++)); do
        if grep -q -e "$1" serve.log; then break; fi
        sleep 0.05
    done
    has "$(cat serve.log)" "$1" "$2"
}
gauge() {
    get "$url/metrics" | grep "^weft_scanner_$1{scanner=\"lease_expiry\"}" | cut -d' ' -f2
}
echo 'scanners = none' >scan.conf
start --config scan.conf
is "$(gauge enabled)" 0 'a server without scanners'
is "$(gauge passes_total)" 0 'makes no passes'
printf 'scanners = all\nscan = *:interval=7s lease_expiry:interval=3s,partitions=0-9\n' >scan.conf
kill -HUP "$server_pid"
says 'msg="a scanner is set anew" scanner=lease_expiry interval_ms=3000 .*partition_last=9' \
    'SIGHUP: the settings of scanners change'
is "$(gauge enabled)" 1 'and hold'
is "$(gauge interval_seconds)" 3 'as they are now'
echo 'scan = nobody:interval=1s' >scan.conf
kill -HUP "$server_pid"
says "scan.conf:1: scan is 'nobody:interval=1s': there is no scanner 'nobody'" 'a wrong file'
says 'everything stays as it was' 'changes nothing'
is "$(gauge interval_seconds)" 3 'at all'
stop TERM
is "$status" 0 'it ends with 0'

exits 3 'a store that cannot be' "$weft" serve --store sqlite:/nowhere/x.db --listen 127.0.0.1:0
has "$err" '^weft: ' 'is told'
exits 2 'an address that is none' "$weft" serve --listen nonsense
plan
