#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Signing keys in a file: two servers over one store, a rotation by SIGHUP, and the change from keys
# of the store to the file.

source "$(dirname "$0")/common.bash"
export WEFT_STORE=$store

second_pid=
stop_second() {
    if [[ -n $second_pid ]]; then kill "$second_pid" 2>/dev/null || true; fi
    leave
}
trap stop_second EXIT

# call METHOD URL [BODY]: sets out to the answer and status to its HTTP status.
call() {
    run python3 -c 'import sys, urllib.error, urllib.request
method, url, body = sys.argv[1:]
request = urllib.request.Request(url, body.encode() if body else None, method=method)
try:
    answer = urllib.request.urlopen(request)
except urllib.error.HTTPError as error:
    answer = error
print(answer.status, answer.read().decode())' "$1" "$2" "${3:-}"
    status=${out%% *}
    out=${out#* }
}

# suspended URL: an execution that waits for a signal; sets token.
suspended() {
    call POST "$1/v1/executions" '{"kind": "k"}'
    call POST "$1/v1/claims" '{"worker": "w"}'
    local id
    id=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["items"][0]["id"])' "$out")
    call POST "$1/v1/leases/suspend" '{"id": "'"$id"'", "epoch": 1, "waitpoints": [{"name": "a"}],
        "condition": {"count": {"n": 100, "of": "signals"}}}'
    token=$(python3 -c 'import json, sys
print(json.loads(sys.argv[1])["waitpoints"][0]["token"])' "$out")
}

# signals URL TOKEN WANTED TEXT: the status of a signal.
signals() {
    call POST "$1/v1/signals/$2" ''
    is "$status" "$3" "$4"
}

# reloaded: both servers read their settings and files again.
reloaded() {
    local before=() log i
    for log in serve.log second.log; do
        before+=("$(grep -c 'signing keys' "$log" || true)")
    done
    kill -HUP "$server_pid" "$second_pid"
    i=0
    for log in serve.log second.log; do
        for ((n = 0; n < 600; n++)); do
            if [[ $(grep -c 'signing keys' "$log" || true) -gt ${before[i]} ]]; then break; fi
            sleep 0.05
        done
        i=$((i + 1))
    done
}

# start_second: a second server; sets other.
start_second() {
    : >second.txt
    "$weft" serve --listen 127.0.0.1:0 --hello >>second.txt 2>>second.log &
    second_pid=$!
    for ((i = 0; i < 1200; i++)); do
        other=$(grep -o 'http://127.0.0.1:[0-9]*' second.txt | head -n 1 || true)
        if [[ -n $other ]]; then break; fi
        sleep 0.05
    done
}

stop_both() {
    kill "$server_pid" "$second_pid"
    wait "$server_pid" "$second_pid" || true
    server_pid= second_pid=
}

secret() { python3 -c 'import os; print(os.urandom(32).hex())'; }
one="1000000001 $(secret)" two="1000000002 $(secret)"
export WEFT_SIGNING_KEY_FILE=$scratch/keys
(umask 077 && echo "$one" >keys)

# ---- a file that is not good ----

chmod 644 keys
exits 2 'serve with a file that others can read' timeout 30 "$weft" serve --listen 127.0.0.1:0
has "$err" 'others than its owner' 'the error says that others than the owner can read the file'
lacks "$err" "${one#* }" 'no secret is printed'
chmod 600 keys

# ---- two servers, one file ----

serve_hello
start_second
suspended "$url"
first=$token
signals "$other" "$first" 200 'the token of one server is good at the other'
call GET "$url/v1/keys"
json "$out" '[(k["key_id"], k["current"]) for k in v["items"]] == [(1000000001, True)]' \
    'keys are listed by their numbers'
lacks "$out" "${one#* }" 'no secret of a key is shown'
call POST "$url/v1/keys/rotate" '{}'
is "$status" 409 'rotate answers conflict'
has "$out" 'signing_key_file' 'the setting signing_key_file is named'
exits 0 'signal over the store, with the file' env -u WEFT_SERVER "$weft" signal "$first"
is "$out" recorded 'the file of WEFT_SIGNING_KEY_FILE is used'
exits 5 'signal over the store, without the file' env -u WEFT_SIGNING_KEY_FILE "$weft" \
    signal "$first"

# ---- rotation: the new key verifies everywhere before it signs ----

printf '%s\n' "$one" "$two" >keys
reloaded
suspended "$url"
call GET "$url/v1/keys"
json "$out" '[k["key_id"] for k in v["items"] if k["current"]] == [1000000001]' \
    'the first line signs still'
printf '%s\n' "$two" "$one" >keys
reloaded
suspended "$url"
second=$token
signals "$other" "$second" 200 'the token of the new key is good'
signals "$other" "$first" 200 'the token of the old key stays good while it is in the file'
echo nonsense >keys
reloaded
has "$(cat serve.log)" 'the signing keys stay as they were' 'a bad file is logged'
signals "$url" "$second" 200 'the keys stay as they were'
signals "$url" "$first" 200 'the old one too'
echo "$two" >keys
reloaded
signals "$other" "$first" 401 'the token of a key that is not in the file any more is refused'
signals "$url" "$second" 200 'the token of the other key is good'
lacks "$(cat serve.log second.log)" "${one#* }|${two#* }" 'no secret is logged'
stop_both
if [[ $store == sqlite:* ]]; then
    is "$(python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
print(db.execute("SELECT count(*) FROM signing_key").fetchone()[0],
      db.execute("SELECT oldest_binary >= 24 FROM schema").fetchone()[0])' "$scratch/weft.db")" \
        '0 1' 'no key is in the store, and it knows that waiting is used'
fi

# ---- from keys of the store to the file ----

printf '%s\n' store "$two" >keys
serve_hello
start_second
suspended "$url"
stored=$token
call GET "$other/v1/keys"
json "$out" '[k["current"] for k in v["items"]] == [False, True]' 'the key of the store signs'
call POST "$url/v1/keys/rotate" '{}'
is "$status" 200 'the key can be rotated'
signals "$other" "$second" 200 'the key of the file verifies'
printf '%s\n' "$two" store >keys
reloaded
suspended "$other"
signals "$url" "$token" 200 'then the key of the file signs'
signals "$url" "$stored" 200 'the token of the key of the store is still good'
echo "$two" >keys
reloaded
signals "$url" "$stored" 401 'without the line store it is refused'
signals "$url" "$token" 200 'and that of the file is good'
stop_both

plan
