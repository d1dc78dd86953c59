#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# weft work: commands that suspend their executions, and what they find when they go on.

source "$(dirname "$0")/work.bash"
source "$(dirname "$0")/common.bash"
export WEFT_STORE=$store weft

# A command that suspends as $REQUEST says, and then tells how it goes on.
cat >ask.sh <<'END'
if [ -n "${WEFT_RESUMED:-}" ]; then
    (cd "$WEFT_SIGNALS" && echo "$WEFT_RESUMED $(echo *)")
    cp -r "$WEFT_SIGNALS" "$KEEP"
    exit 0
fi
if [ -n "${NEW:-}" ]; then
    "$weft" waitpoints --new "$NEW" >"$KEEP.token" || exit 1
fi
if [ -n "${EARLY:-}" ]; then
    "$weft" signal "$(cat "$KEEP.token")" "$EARLY" >"$KEEP.effect" || exit 1
fi
printf '%s' "$REQUEST" >"$WEFT_SUSPEND_FILE"
exit 79
END

# work_once KIND: one command for one execution.
work_once() {
    KEEP=$scratch/$1 "$weft" work --kind "$1" --max 1 --json -- sh "$scratch/ask.sh"
}

result() {
    "$weft" show "$1" --wait=20s --result
}

# ---- Signals ----

export REQUEST='{"waitpoints":[{"name":"a"}],"reason":"two are needed",
  "condition":{"count":{"n":2,"of":"signals"}}}'
export NEW=a
id=$(submit -k two 1)
exits 0 'work with a command that exits with 79' work_once two
json "$out" 'v["outcome"] == "suspended" and v["message"] == "two are needed"' \
    'the line says that it was suspended'
is "$(state "$id")" suspended 'exit code 79 suspends the execution'
exits 0 'waitpoints of a suspended execution' "$weft" waitpoints "$id" --json
json "$out" '[(w["name"], w["state"]) for w in v["items"]] == [("a", "open")]' \
    'the waitpoint that was made before is the one of the suspend'
is "$("$weft" signal "$(cat two.token)" --name yes --source ann '{"n":1}')" recorded \
    'the first of two signals is recorded'
is "$("$weft" signal "$(cat two.token)" 'two  lines')" resumed 'the second signal resumes it'
exits 0 'work after the resumption' work_once two
json "$out" 'v["outcome"] == "done" and v["attempt"] == 1' 'the suspend spent no attempt'
is "$(result "$id")" 'signals 1 2 signals.json' 'WEFT_SIGNALS has a file per signal and an index'
is "$(cat two/1)" '{"n":1}' 'the first file is the payload of the first signal'
is "$(cat two/2)" 'two  lines' 'the second file is the payload of the second signal'
json "$(cat two/signals.json)" \
    '[(s["n"], s["name"], s["source"], s["waitpoint_name"], s["content_type"], "payload" in s)
      for s in v["items"]] == [(1, "yes", "ann", "a", "application/json", False),
                               (2, None, None, "a", "text/plain", False)]' \
    'the index has all but the payloads'

# ---- Early signals, timeouts, operators ----

export EARLY='"paid"'
REQUEST='{"waitpoints":[{"name":"a"}]}'
id=$(submit -k early 1)
KEEP=$scratch/early in_background --kind early --json -- sh "$scratch/ask.sh"
is "$(result "$id")" 'signals 1 signals.json' 'an early signal: the command runs again at once'
is "$(cat early.effect early/1)" $'buffered\n"paid"' 'an early signal is kept for the command'
kill "$worker"
ends 0 'a worker that is stopped ends with 0'
is "$(grep -c '"outcome":"suspended"' work.out) $(grep -c '"outcome":"done"' work.out)" '1 1' \
    'an early signal: both runs of the command have a line'
json "$("$weft" show "$id" --json)" 'v["epoch"] == 1' 'an early signal: the lease stayed'
unset EARLY NEW

REQUEST='{"condition":{"timeout":true},"timeout_ms":20,"on_timeout":"resume"}'
id=$(submit -k sleep 1)
KEEP=$scratch/sleep in_background --kind sleep -- sh "$scratch/ask.sh"
is "$(result "$id")" 'timeout signals.json' 'a timeout resumes with WEFT_RESUMED=timeout'
kill "$worker"
ends 0 'a worker that is stopped ends with 0'

REQUEST='{"condition":{"operator":true}}'
id=$(submit -k ask 1)
exits 7 'work --drain with a command that suspends' env KEEP="$scratch/ask" \
    "$weft" work --kind ask --drain -- sh "$scratch/ask.sh"
has "$out" "^suspended $id" 'the status line says that the execution is suspended'
has "$err" '1 execution is left that this worker cannot serve: 1 is suspended' \
    'stderr counts the suspended execution'
exits 0 'resume by an operator' "$weft" resume "$id"
exits 0 'work after the resumption by an operator' work_once ask
is "$(result "$id")" 'operator signals.json' 'an operator resumes with WEFT_RESUMED=operator'

# ---- More signals than a claim carries, and bytes ----

REQUEST='{"waitpoints":[{"name":"a"},{"name":"b"}],
  "condition":{"count":{"n":5,"of":"signals"}}}'
export NEW=a
id=$(submit -k more 1)
exits 0 'work with a command that waits for five signals' work_once more
unset NEW
head -c 40000 /dev/zero | tr '\0' x >large
printf 'b\0\n\377' >bytes
# The second waitpoint has a token that only an operator can ask for.
other=$("$weft" waitpoints "$id" --json | python3 -c 'import json, sys
print(*(w["id"] for w in json.load(sys.stdin)["items"] if w["name"] == "b"))')
serve_hello
token=$(curl -fsS -X POST "$url/v1/waitpoints/$other/token" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["token"])')
first=$(cat more.token)
for name in "$first?name=1" "$token?name=2" "$first?name=3" "$token?name=4"; do
    curl -fsS -o /dev/null --data-binary @large -H 'content-type: text/plain' \
        "$url/v1/signals/$name"
done
curl -fsS -o /dev/null --data-binary @bytes -H 'content-type: application/octet-stream' \
    "$url/v1/signals/$first?name=5"
exits 0 'work with more signals than a claim carries' env -u WEFT_STORE WEFT_SERVER="$url" \
    KEEP="$scratch/more" "$weft" work --kind more --max 1 -- sh "$scratch/ask.sh"
kill "$server_pid"
wait "$server_pid" || true
server_pid=
is "$(result "$id")" 'signals 1 2 3 4 5 signals.json' 'the folder has them all'
json "$(cat more/signals.json)" '[s["name"] for s in v["items"]] == ["1", "2", "3", "4", "5"]' \
    'in the order of their arrival'
is "$(cat more/1 more/2 more/3 more/4 | cmp - <(cat large large large large) && echo same)" same \
    'each file has the whole payload'
is "$(cmp more/5 bytes && echo same)" same 'a payload of bytes is kept byte for byte'

# ---- Mistakes ----

# refused TEXT PATTERN: the request fails the attempt with an error that says why.
refused() {
    REQUEST=$1
    id=$(submit -k refused --max-attempts 1 1)
    exits 0 "work with the request $1" work_once refused
    is "$(state "$id")" failed "the request $1 fails the attempt"
    json "$("$weft" show "$id" --json)" \
        "v['error']['class'] in ('bad_suspend', 'suspend_refused')" 'with a class of its own'
    has "$("$weft" show "$id" --json)" "$2" "the error of the request $1 says what is wrong"
}

refused '' 'WEFT_SUSPEND_FILE is not valid: .*a value is missing'
refused '{"waitpoints":[{"nam":"a"}]}' 'WEFT_SUSPEND_FILE is not valid: .*nam'
refused '{"id":"01932c07-5f3e-7a10-8c51-0123456789ab"}' 'WEFT_SUSPEND_FILE is not valid: .*id'
refused '{"timeout_ms":"1"}' 'WEFT_SUSPEND_FILE is not valid: .*timeout_ms'
refused '{"waitpoints":[{"name":"a b"}]}' 'WEFT_SUSPEND_FILE cannot be met: .*name'
refused '{"condition":{"waitpoint":"a"}}' 'suspend_refused'
id=$(submit -k none --max-attempts 1 1)
exits 0 'work with a command that exits with 79 and writes no request' \
    "$weft" work --kind none --max 1 -- sh -c 'exit 79'
has "$out" 'bad_suspend: .*WEFT_SUSPEND_FILE is not there' 'the status line names WEFT_SUSPEND_FILE'
exits 2 'waitpoints --new without a lease' "$weft" waitpoints --new a
exits 2 'waitpoints without an id' "$weft" waitpoints
exits 2 'waitpoints --epoch without --new' "$weft" waitpoints "$id" --epoch 1
exits 6 'waitpoints --new with a lease that is gone' "$weft" waitpoints "$id" --new a --epoch 1

plan
