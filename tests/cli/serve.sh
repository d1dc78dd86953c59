#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# weft serve: it starts without a store, prints commands to try, answers, and stops on a signal. The
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
    bad 'serve starts' "$(cat serve.log)"
    plan
    exit 1
fi
ok 'serve starts in an empty folder'
has "$(cat hello.txt)" 'its store is sqlite:weft.db' 'serve --hello names the store'
is "$(grep -c "^  .*weft'\? [a-z]" hello.txt)" 3 'serve --hello names three commands'
if [[ -s weft.db ]]; then ok 'the file of the store exists'; else bad \
    'the file of the store exists'; fi

export WEFT_SERVER=$url
exits 0 'submit to a server' "$weft" submit --kind greet --key k1 '{"name":"Ada"}'
id=$out
exits 0 'ls of a server' "$weft" ls
has "$out" "^$id +default +greet +ready" 'lists the execution'
exits 0 'show of a server' "$weft" show "$id"
has "$out" '^payload +\{"name":"Ada"\}' 'has the payload'
exits 0 'submit with a known key to a server' "$weft" submit --kind greet --key k1 '{"name":"Ada"}'
is "$out" "$id" 'prints the same id'
exits 6 'submit with a known key and another payload to a server' "$weft" submit --kind greet \
    --key k1 '{"name":"Bob"}'
for _ in 1 2 3; do
    "$weft" cancel "$id" >/dev/null
    "$weft" replay "$id" >/dev/null
done
exits 0 'show of an execution that was replayed often' "$weft" show "$id" --json
json "$out" '[a["ended"] for a in v["attempts"]] == ["cancelled"] * 3' 'has its history'
get() {
    python3 -c 'import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())' "$1"
}
page=$(get "$url/v1/executions/$id/attempts?limit=2")
json "$page" 'len(v["items"]) == 2 and v["next"]' 'attempts with a limit are a page'
after=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["next"])' "$page")
page=$(get "$url/v1/executions/$id/attempts?limit=2&after=$after")
json "$page" 'len(v["items"]) == 1 and v["next"] is None' 'attempts after the cursor are the others'
exits 0 'submit --count to a server' "$weft" submit --kind many --lane many --count 2500 '{}'
is "$(sort -u <<<"$out" | wc -l)" 2500 \
    'submit --count to a server: prints an id for each'
exits 0 'ls --all of a server' "$weft" ls --all --lane many --json
is "$(wc -l <<<"$out")" 2500 'ls --all of a server: lists every execution'
exits 0 'cancel with a filter at a server' "$weft" cancel --lane many --yes
is "$out" 'cancelled 2500 executions' 'cancels all of them'
exits 0 'replay by id at a server' "$weft" replay "$("$weft" ls --lane many --limit 1 --json |
    grep -o '[0-9a-f-]\{36\}' | head -n 1)"
exits 0 'lanes with a limit at a server' "$weft" lanes many --pause --max-running 3 --json
json "$out" 'v["paused"] and v["max_running"] == 3' 'the limit is shown'
exits 0 'counts --json of a server' "$weft" counts --json --lane many
counted many 'v["items"][0]["ready"] == 1' 'has the counts'
exits 0 'counts of a server' "$weft" counts --lane many
has "$out" '^as of (now|[0-9.]+ s ago)$' 'has the age of the counts'
exits 0 'workers of a server that none has used' "$weft" workers --json
exits 3 'workers --goodbye for a worker that does not exist' "$weft" workers none --goodbye --json
held=$("$weft" submit --kind hold --lane held '{}')
curl -sf -d '{"worker":"w-1","lanes":["held"]}' "$url/v1/claims" >/dev/null
for ((i = 0; i < 600; i++)); do
    "$weft" workers --json | grep -q '"worker":"w-1"\|"name":"w-1"' && break
    sleep 0.05
done
exits 0 'workers of a worker that runs a command' "$weft" workers w-1
has "$out" '^w-1 +1 ' 'has the number of its leases'
has "$out" "^$held +held +hold +1 " 'has the execution that it holds'
exits 0 'workers --json of a worker that runs a command' "$weft" workers w-1 --json
json "$out" "[i['id'] for i in v['holds']] == ['$held']" 'has the execution that it holds'
exits 0 'revoke of the execution that it holds' "$weft" revoke "$held"
is "$out" "$held revoked" 'says that it is revoked'
curl -sf -d '{"worker":"w-1","lanes":["held"]}' "$url/v1/claims" >/dev/null
exits 0 'workers --goodbye for the worker' "$weft" workers w-1 --goodbye
is "$out" '1 lease released' 'releases its leases'
exits 3 'workers for the worker after goodbye' "$weft" workers w-1
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
lacks "$("$weft" workers)" "-$worker_pid-" 'a worker that has stopped is not listed'
exits 0 'show of an execution that one of two processes of a name holds' "$weft" show "$held"
has "$out" 'running' 'the stop of one process leaves the leases of the other'
exits 4 'show --wait that times out at a server' "$weft" show "$id" --wait=200ms
exits 0 'cancel at a server' "$weft" cancel "$id"
exits 1 'show --wait of a cancelled execution at a server' "$weft" show "$id" --wait
exits 3 'show of an execution that does not exist at a server' "$weft" show \
    01932c07-5f3e-7a10-8c51-0123456789ab
exits 0 'ls through the store of the server' env -u WEFT_SERVER "$weft" ls --store sqlite:weft.db \
    --lane many

kill -HUP "$server_pid"
exits 0 'ls after SIGHUP' "$weft" ls
stop TERM
is "$status" 0 'serve ends with exit code 0 after SIGTERM'
has "$(cat serve.log)" "msg=serving .*url=$url" 'the log has the URL of the server'
has "$(cat serve.log)" 'msg=stopped' 'the log says that it stopped'
exits 4 'ls of a server that has stopped' "$weft" ls
is "$out" '' 'nothing on stdout'
has "$err" "^weft: cannot reach $url: Connection refused$" 'the error says that it is not reached'
has "$err" '^hint: start one with `weft serve`, or name a store with --store$' 'there is a hint'

start --tokens --log-format json --access-log
export WEFT_SERVER=$url
exits 5 'ls without a token' "$weft" ls
has "$err" '^hint: .*--token' 'there is a hint'
has "$err" 'weft token create --store URL' 'the hint says how the first token is made'
exits 5 'token create without a token' "$weft" token create --name test --scopes read
has "$err" 'weft token create --store URL' 'the hint says how the first token is made'
# The first admin token comes from the store, all others from the server that WEFT_SERVER names.
db=$scratch/weft.db
exits 0 'token create on the store' env -u WEFT_SERVER "$weft" token create --store "sqlite:$db" \
    --name me \
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
has "$out" ' me +\(any\) +admin .* in 89 d$' 'token ls through the server lists the token'
export WEFT_TOKEN=$admin
exits 0 'token create through the server' "$weft" token create --name test --scopes read --json
json "$out" 'v["name"] == "test" and v["scopes"] == ["read"] and v["expires_at"] is None' \
    'name, scopes and expiry are as asked for'
token=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["token"])' "$out")
id=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["id"])' "$out")
exits 0 'ls with the new token' "$weft" ls --token "$token"
exits 0 'token rotate --grace' "$weft" token rotate "$id" --grace 1h
has "$out" '^weft_[0-9]+_[A-Za-z0-9_-]{43}$' 'prints the new token alone'
has "$err" '^token [0-9]+ for test, a new secret; the old one ends in 59 m; .* this once' \
    'stderr has a note'
old=$token token=$out
exits 0 'ls with the old token within its grace' "$weft" ls --token "$old"
exits 0 'token rotate --json' "$weft" token rotate "$id" --grace 0 --json
json "$out" 'v["old_expires_at"] is None and v["rotated_at"]' 'the old token has no grace'
exits 5 'ls with the old token after its grace' "$weft" ls --token "$old"
has "$err" 'the token was rotated' 'the error says that the token was rotated'
exits 5 'ls with the token before the last rotation' "$weft" ls --token "$token"
run "$weft" token rotate "$id" --json
token=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["token"])' "$out")
exits 5 'token create with a token for reading' "$weft" token create --name x --scopes read \
    --token "$token"
exits 3 'token rotate of a token that does not exist' "$weft" token rotate 4711
exits 2 'token rotate without an id' "$weft" token rotate
exits 0 'ls with the last token' "$weft" ls --token "$token"
exits 0 'token list after a use' "$weft" token list --json
json "$out" 'all(i["last_used_at"] for i in v["items"])' 'shows the use at once'
unset WEFT_TOKEN
cd ..
is "$(ls -A elsewhere)" '' 'commands through a server create no store'
exits 0 'ls with --token' "$weft" ls --token "$token"
exits 0 'ls with WEFT_TOKEN' env WEFT_TOKEN="$token" "$weft" ls
exits 5 'submit with a token for reading' "$weft" submit -k x --token "$token"
# Upkeep writes uses down, every few seconds and not with each request.
used() {
    run env -u WEFT_SERVER "$weft" token ls --store "sqlite:$db" --json
    python3 -c 'import json,sys
sys.exit(not all(i["last_used_at"] for i in json.loads(sys.argv[1])["items"]))' "$out"
}
for ((i = 0; i < 300; i++)); do if used; then break; fi; sleep 0.1; done
if used; then
    ok 'the last use of a token is written to the store'
else
    bad 'the last use of a token is written to the store' "$out"
fi
exits 0 'token revoke through the server' "$weft" token revoke "$id" --token "$admin"
exits 5 'ls with the revoked token' "$weft" ls --token "$token"
exits 0 'token revoke through the store' env -u WEFT_SERVER "$weft" token revoke 1 \
    --store "sqlite:$db"
until_it_exits 5 "$weft" ls --token "$admin"
is "$status" 5 'a token that was revoked through the store is refused within seconds'
lacks "$(cat serve.log)" "$token" 'the log has no secret of a token'
lacks "$(cat serve.log)" "${admin#weft_*_}" 'the log has no secret of the admin token'
has "$(cat serve.log)" '"msg":"a token was revoked","token":2,"name":"test","by_token":1' \
    'the log says who did what to which token'
if python3 -c '
import json, sys
for line in open("serve.log"):
    json.loads(line)'; then
    ok 'every line of the log is JSON'
else
    bad 'every line of the log is JSON' "$(cat serve.log)"
fi
stop INT
is "$status" 0 'serve ends with exit code 0 after SIGINT'

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
is "$(gauge enabled)" 0 'serve --scanners none starts'
is "$(gauge passes_total)" 0 'serve --scanners none runs no pass'
printf 'scanners = all\nscan = *:interval=7s lease_expiry:interval=3s,partitions=0-9\n' >scan.conf
kill -HUP "$server_pid"
says 'msg="a scanner is set anew" scanner=lease_expiry interval_ms=3000 .*partition_last=9' \
    'SIGHUP reloads the settings of scanners'
is "$(gauge enabled)" 1 'the reloaded interval holds'
is "$(gauge interval_seconds)" 3 'the reloaded limits hold'
echo 'scan = missing:interval=1s' >scan.conf
kill -HUP "$server_pid"
says "scan.conf:1: scan is 'missing:interval=1s': there is no scanner 'missing'" \
    'SIGHUP with an invalid file is logged'
says 'everything stays as it was' 'SIGHUP with an invalid file changes no interval'
is "$(gauge interval_seconds)" 3 'SIGHUP with an invalid file changes no limit'
stop TERM
is "$status" 0 'serve without scanners ends with exit code 0'

exits 3 'serve with a store that cannot be opened' "$weft" serve --store sqlite:/nowhere/x.db \
    --listen 127.0.0.1:0
has "$err" '^weft: ' 'an error is printed'
exits 2 'serve with an invalid address' "$weft" serve --listen nonsense
plan
