#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# weft work: a command per execution, on a store of its own.

source "$(dirname "$0")/work.bash"
source "$(dirname "$0")/common.bash"
export WEFT_STORE=$store

# ---- The command line ----

exits 2 'work without a command' "$weft" work
exits 2 'work --concurrency 0' "$weft" work --concurrency 0 -- true
id=$(submit -k shout '"hello"')
exits 3 'work with a command that does not exist' "$weft" work --kind shout -- no-such-command
has "$err" "no command 'no-such-command'" 'the error names the command'
is "$(state "$id")" ready 'nothing is claimed when the command does not exist'

# ---- Results ----

exits 0 'work --drain' "$weft" work --kind shout --drain -- tr a-z A-Z
has "$out" "^done +$id shout [0-9.]+ s$" 'work --drain: a status line per execution'
is "$("$weft" show "$id" --result)" '"HELLO"' 'the output of the command is the result'
exits 0 'work --drain with nothing to do' "$weft" work --kind shout --drain -- false

id=$(submit -k env --tag Size-Of=9 --tenant acme 1)
exits 0 'work with a command that prints its environment' "$weft" work --kind env --drain -- \
    sh -c 'echo "$WEFT_ID $WEFT_KIND $WEFT_ATTEMPT $WEFT_TENANT $WEFT_TAG_SIZE_OF"'
is "$("$weft" show "$id" --result)" "$id env 1 acme 9" 'the environment describes the execution'

first=$(submit -k many 1)
for i in 2 3 4 5 6 7 8; do submit -k many "$i" >/dev/null; done
exits 0 'work --concurrency --json' "$weft" work --kind many --concurrency 4 --drain --json -- cat
is "$(wc -l <<<"$out")" 8 'work --concurrency --json: a line of JSON per execution'
json "$(head -n 1 <<<"$out")" 'v["outcome"] == "done" and v["kind"] == "many"' \
    'work --concurrency --json: each line has outcome, kind and attempt'
is "$("$weft" show "$first" --result)" 1 'the command gets the payload on standard input'

# ---- Failures ----

id=$(submit -k bad --max-attempts 2 --retry-delay 10ms 1)
exits 0 'work with a command that fails' "$weft" work --kind bad --drain -- sh -c \
    'echo "it broke" >&2; exit 3'
is "$(grep -c "^fail  $id bad [0-9.]* s exit_3: it broke$" <<<"$out")" 2 \
    'work with a command that fails: every attempt has a status line'
has "$err" "^${id: -8}: it broke$" 'stderr of the command is passed on with the end of the id'
is "$(state "$id")" failed 'an execution fails after its last attempt'
has "$("$weft" show "$id")" '^attempt +2 of 2 used$' 'no attempt is left after the last one'

id=$(submit -k bad 1)
exits 0 'work with a command that exits with 65' "$weft" work --kind bad --drain -- sh -c 'exit 65'
has "$out" "^quit  $id" 'the status line says that it failed for good'
is "$(state "$id")" failed 'exit code 65 fails the execution at once'
has "$("$weft" show "$id")" '^attempt +1 of 25 used, not retried: its worker said' \
    'show says why it is not retried'

id=$(submit -k later --max-attempts 1 1)
exits 0 'work with a command that exits with 75 twice' "$weft" work --kind later --drain \
    --retry-later-after 10ms -- \
    sh -c '[ "$WEFT_EPOCH" -eq 3 ] && echo "$WEFT_ATTEMPT" || exit 75'
is "$(grep -c "^later $id" <<<"$out")" 2 \
    'work with a command that exits with 75: the execution comes back'
is "$("$weft" show "$id" --result)" 1 'exit code 75 uses up no attempt'

id=$(submit -k large --max-attempts 2 1)
exits 0 'work with a command that prints more than 1 MiB' "$weft" work --kind large --drain -- \
    head -c 2000000 /dev/zero
has "$out" "^quit  $id .*output_too_large: the command wrote more than 1048576 bytes" \
    'the status line has the class output_too_large'
is "$(state "$id")" failed 'too much output fails the execution for good'

id=$(submit -k waits --retry-delay 1h 1)
exits 0 'work --max 1 with a command that fails' "$weft" work --kind waits --max 1 -- false
has "$("$weft" show "$id")" '^attempt +2 of 25, next try in [4-9][0-9] m \(at 20.*Z\)$' \
    'show says when it is tried again'

for i in 1 2 3; do submit -k some "$i" >/dev/null; done
exits 0 'work --max 2 with three executions' "$weft" work --kind some --max 2 -- cat
is "$(grep -c '^done' <<<"$out")" 2 \
    'work --max 2 with three executions: work --max 2: two executions are run'
exits 0 'work --drain after work --max' "$weft" work --kind some --drain -- cat
is "$(grep -c '^done' <<<"$out")" 1 'work --drain after work --max: the third execution is run'

# ---- Stopping ----

id=$(submit -k long 1)
stubborn="trap '' TERM; echo up >&2; exec tail -f /dev/null"
in_background --kind long --lease 1s --kill-after 100ms --drain -- sh -c "$stubborn"
if until_true grep -q up work.err; then
    ok 'a command that ignores SIGTERM runs'
else
    bad 'a command that ignores SIGTERM runs'
fi
is "$(state "$id")" running 'the lease of a long command is renewed'
"$weft" cancel "$id" >/dev/null
ends 0 'the cancel of an execution ends its command'
has "$(cat work.out)" "^lost  $id long [0-9.]+ s cancelled$" \
    'the status line says that it was cancelled'
is "$(state "$id")" cancelled 'the execution stays cancelled'

id=$(submit -k long 1)
in_background --kind long --grace 0s --kill-after 100ms -- sh -c "$stubborn"
if until_true grep -q up work.err; then
    ok 'another long command runs'
else
    bad 'another long command runs'
fi
kill -TERM "$worker"
ends 0 'SIGTERM ends the worker'
is "$(state "$id")" ready 'an execution that was stopped by SIGTERM is ready again'

in_background --kind long --grace 1h --kill-after 1h -- sh -c "$stubborn"
if until_true grep -q up work.err; then
    ok 'the next worker runs the execution again'
else
    bad 'the next worker runs the execution again'
fi
kill -TERM "$worker"
# Signals of one kind that wait are one: the second must not come before the first was taken.
until_true grep -q 'stopping' work.err || bad 'stderr has a line about the stop' "$(cat work.err)"
kill -INT "$worker"
until_true grep -q 'at once' work.err || bad 'stderr has a line about the hurry' "$(cat work.err)"
kill -TERM "$worker"
ends 0 'a third signal kills the command'
is "$(state "$id")" ready 'an execution that was stopped by three signals is ready again'

# ---- Draining what cannot be served here ----

gpu=$(submit -k draw --capability gpu 1)
exits 7 'work --drain without a capability that is needed' "$weft" work --kind draw --drain -- cat
is "$err" 'weft: 1 execution is left that this worker cannot serve: 1 needs the capability gpu' \
    'stderr says why they are left'
submit -k draw --capability gpu --capability arm 1 >/dev/null
submit -k draw --capability gpu --delay 1h 1 >/dev/null
plain=$(submit -k draw 1)
exits 7 'work --drain with some executions that it can serve' "$weft" work --kind draw --drain -- \
    cat
has "$err" ' serve: 2 need the capability gpu, 1 needs the capabilities arm, gpu$' \
    'executions that need a capability are left, also delayed ones'
is "$(state "$plain")" succeeded 'executions that it can serve are done'
exits 0 'work --drain with one of two capabilities' "$weft" work --kind draw --max 1 --capability \
    gpu -- cat
is "$(state "$gpu")" succeeded 'an execution that needs only that one is done'

submit -k post -l mail --count 2 1 >/dev/null
submit -k post -l mail --delay 1h 1 >/dev/null
submit -k post -l open 1 >/dev/null
"$weft" lanes mail --pause >/dev/null
exits 7 'work --drain with a paused lane' "$weft" work -l mail -l open --drain -- cat
has "$err" 'serve: 3 in the paused lane mail \(weft lanes mail --resume\)$' \
    'stderr says why they are left'
is "$(grep -c '^done' <<<"$out")" 1 \
    'work --drain with a paused lane: executions of the other lane are done'

cat >apart.json <<'END'
{"nodes": [{"name": "first", "kind": "here", "lane": "apart"},
           {"name": "last", "kind": "here", "lane": "apart", "after": ["middle"]},
           {"name": "middle", "kind": "there", "lane": "apart", "after": ["first"]}]}
END
"$weft" flow run apart.json >/dev/null
exits 7 'work --drain with a flow that goes on in another lane' "$weft" work -l apart --kind here \
    --drain -- cat
has "$err" 'serve: 1 waits for nodes of flows that it does not run$' 'stderr says why they are left'
exits 0 'work --drain with all lanes of the flow' "$weft" work -l apart --drain -- cat
is "$(grep -c '^done' <<<"$out")" 2 'work --drain with all lanes of the flow: the flow ends'

# Another worker runs it and puts it back: until then there may be something to do.
id=$(submit -k shared 1)
in_background --kind shared --grace 0s --kill-after 0s -- \
    sh -c "echo up >&2; exec tail -f /dev/null"
if until_true grep -q up work.err; then
    ok 'another worker runs an execution of the lane'
else
    bad 'another worker runs an execution of the lane'
fi
"$weft" work --kind shared --drain -- cat >drain.out 2>drain.err &
drainer=$!
until_true grep -q 'waiting for .*, which worker .* runs' drain.err || true
has "$(cat drain.err)" "^weft: waiting for $id, which worker .* runs$" \
    'work --drain names the execution and the worker that it waits for'
kill -TERM "$worker"
ends 0 'the other worker is stopped'
status=0
wait "$drainer" || status=$?
is "$status" 0 'work --drain ends after the other worker has stopped'
has "$(cat drain.out)" "^done +$id" 'the execution of the other worker is done here'

# ---- Progress ----

id=$(submit -k slow 1)
progress='echo nonsense >&3; echo "40 half way" >&$WEFT_PROGRESS_FD; exec tail -f /dev/null'
in_background --kind slow --lease 1h --grace 0s --kill-after 0s -- sh -c "$progress"
half_way() { "$weft" show "$id" | grep -q '40 *%.*half way'; }
if until_true half_way; then
    ok 'show has the progress of the command'
else
    bad 'show has the progress of the command' "$("$weft" show "$id")"
fi
is "$(grep -c 'a line of progress was ignored' work.err)" 1 \
    'an invalid line of progress is warned of'
kill -TERM "$worker"
ends 0 'a worker with a command that reports progress stops'

# ---- A worker that is killed ----

cat >killed.json <<'END'
{"nodes": [{"name": "a", "kind": "first", "lane": "killed"},
           {"name": "b", "kind": "second", "lane": "killed", "after": ["a"]}]}
END
export TMPDIR=$scratch
"$weft" flow run killed.json >/dev/null
run "$weft" work -l killed --kind first --drain -- echo 1
in_background -l killed --kind second --lease 1s -- \
    sh -c 'sleep 1000 & echo $$ $! "$WEFT_UPSTREAM" >pids; wait'
until_true test -s pids || bad 'the command runs' "$(cat work.err)"
read -r command child folder <pids
kill -KILL "$worker"
wait "$worker" 2>/dev/null || true
server_pid=
gone() { [[ ! -e /proc/$1 || $(cut -d' ' -f3 "/proc/$1/stat") == Z ]]; }
if until_true gone "$command"; then ok 'the command dies too'; else bad 'the command dies'; fi
if until_true gone "$child"; then ok 'its children too'; else bad 'its children' "$child"; fi
if [[ -e $folder/a ]]; then
    ok 'the directory of results of a killed worker is left behind'
else
    bad 'the directory of results of a killed worker is left behind' "$folder"
fi
mkdir "$scratch/weft-upstream-used"
exec 9<"$scratch/weft-upstream-used"
flock 9
exits 0 'work after a killed worker' "$weft" work -l killed --drain -- cat
if [[ -e $folder ]]; then bad 'removes them' "$(ls "$scratch")"; else ok 'removes them'; fi
if [[ -e weft-upstream-used ]]; then
    ok 'a directory that is in use is not removed'
else
    bad 'a directory that is in use is not removed'
fi
exec 9<&-

# ---- The same through a server ----

unset WEFT_STORE
serve_hello
export WEFT_SERVER=$url
submit -k post -l shut 1 >/dev/null
submit -k draw -l shut --capability gpu 1 >/dev/null
"$weft" lanes shut --pause >/dev/null
exits 7 'work --drain through a server with a paused lane' "$weft" work -l shut --drain -- cat
has "$err" '2 executions .* serve: 2 in the paused lane shut ' 'stderr says why they are left'
"$weft" lanes shut --resume >/dev/null
exits 7 'work --drain through a server without a capability that is needed' "$weft" work -l shut \
    --drain -- cat
has "$err" '1 execution .* serve: 1 needs the capability gpu$' 'stderr says why it is left'
is "$(grep -c '^done' <<<"$out")" 1 \
    'work --drain through a server: executions that it can serve are done'
exits 0 'work --drain through a server with all capabilities' "$weft" work -l shut --capability \
    gpu --drain -- cat

plan
