#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# submit, ls, show, cancel and replay on a store of their own, SQLite or PostgreSQL.

source "$(dirname "$0")/common.bash"
export WEFT_STORE=$store
uuid='^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'
nobody=01932c07-5f3e-7a10-8c51-0123456789ab

# ---- submit ----

exits 0 'submit' "$weft" submit --kind mail '{"to": "ada"}'
first=$out
has "$first" "$uuid" 'prints the id and nothing else'
is "$err" '' 'and says nothing on stderr'
is "$("$weft" show "$first" --payload)" '{"to": "ada"}' 'JSON comes back byte for byte'

exits 0 'submit with all there is' "$weft" submit -k resize -l images --key img-1 -p 7 --delay 1h \
    --deadline +2d --capability gpu --capability big --tenant acme -t size=9 --tag a=b=c \
    --max-attempts 2 --timeout 5m --lease 45s --backoff fixed --retry-delay 2s --retry-max 1m \
    --no-jitter --no-retry bad_input --max-lost 3 --retention 2d 'some text'
full=$out
exits 0 'show --json' "$weft" show "$full" --json
json "$out" 'v["lane"] == "images" and v["kind"] == "resize" and v["state"] == "delayed"' 'what'
json "$out" 'v["priority"] == 7 and v["tenant"] == "acme" and v["key"] == "img-1"' 'whose'
json "$out" 'v["tags"] == {"size": "9", "a": "b=c"}' 'the tags'
json "$out" 'sorted(v["capabilities"]) == ["big", "gpu"]' 'the capabilities'
json "$out" 'v["deadline_at"] > v["run_at"] > v["created_at"]' 'the moments'
json "$out" '__import__("base64").b64decode(v["payload_base64"]) == b"some text"' 'the payload'
exits 0 'show' "$weft" show "$full"
has "$out" '^payload +some text \(9 bytes, text/plain' 'a payload that is no JSON is text'
has "$out" '^tag +a=b=c$' 'shows tags'
has "$out" '^runs at +20.*Z \(in 59 m\)$' 'and moments as people say them'
has "$out" '^attempt +1 of 2$' 'the attempt that is next, and how many there may be'
has "$out" '^retries +every 2 s$' 'how retries wait'
has "$out" '^no retry +bad_input$' 'and which errors are final'
exits 0 'show with the default policy' "$weft" show "$first"
has "$out" '^attempt +1 of 25$' 'there may be 25 attempts'
has "$out" '^retries +exponential from 1 s, factor 2, at most 1 h, \+-20 %$' 'with growing waits'

exits 0 'the same key again' "$weft" submit -k resize -l images --key img-1 'some text'
is "$out" "$full" 'gives the first one'
has "$err" 'the key is known' 'and says so'
exits 0 'with --json' "$weft" submit -k resize -l images --key img-1 'some text' --json
json "$out" 'v["duplicate"] is True and v["state"] == "delayed"' 'it is told apart'
exits 6 'the key with something else' "$weft" submit -k resize -l images --key img-1 'other text'
has "$err" '^hint: ' 'is a conflict with a hint'

printf 'from a file\n\xff' >payload.bin
exits 0 'a payload from a file' "$weft" submit -k x @payload.bin
"$weft" show "$out" --payload >back.bin
if cmp -s payload.bin back.bin; then ok 'byte for byte'; else bad 'byte for byte'; fi
id=$(printf '[1,2]' | "$weft" submit -k x -)
is "$("$weft" show "$id" --payload)" '[1,2]' 'a payload from standard input'
id=$(echo x | "$weft" submit -k piped)
is "$("$weft" show "$id" --payload | od -c | head -n 1)" '0000000   x  \n' \
    'a pipe is the payload where no argument is'
id=$("$weft" submit -k piped <payload.bin)
"$weft" show "$id" --payload >back.bin
if cmp -s payload.bin back.bin; then ok 'and so is a file'; else bad 'and so is a file'; fi
id=$(: | "$weft" submit -k piped)
exits 3 'an empty pipe is no payload' "$weft" show "$id" --payload
exits 0 'no payload' "$weft" submit -k x
exits 3 'has none to show' "$weft" show "$out" --payload
exits 2 'JSON with a slip' "$weft" submit -k x '{"a":}'
has "$err" 'not valid JSON' 'is told'
exits 0 'unless it is to be text' "$weft" submit -k x '{"a":}' --content-type text/plain
exits 0 'a moment' "$weft" submit -k x --run-at 2099-01-31T12:00:00Z
head -c 1048577 /dev/zero >large.bin
exits 2 'a payload that is too large' "$weft" submit -k x @large.bin
exits 2 'a file that is not there' "$weft" submit -k x @nowhere
exits 2 'no kind' "$weft" submit '{}'
exits 2 'a kind that is no name' "$weft" submit -k 'a b'
for option in '--priority 40000' '--delay soon' '--run-at tomorrow' '--tag novalue' '--count 0' \
    '--max-attempts 0' '--backoff slow' '--deadline -5m'; do
    # shellcheck disable=SC2086
    exits 2 "a bad $option" "$weft" submit -k x $option
done

exits 0 'many copies' "$weft" submit -k copy -l copies --count 2500 '{}'
is "$(sort -u <<<"$out" | wc -l)" 2500 'have an id each'
exits 2 'but no key' "$weft" submit -k copy --key k --count 2 '{}'

python3 -c '
for i in range(2345):
    print("{\"lane\":\"bulk\",\"kind\":\"b\",\"payload\":{\"n\":%d},\"key\":\"b-%d\"}" % (i, i))
' >bulk.jsonl
exits 0 'a file of specs' "$weft" submit --bulk bulk.jsonl
is "$(sort -u <<<"$out" | wc -l)" 2345 'is submitted'
is "$err" 'weft: accepted 2345, duplicates 0, refused 0' 'and summed up'
exits 0 'and again' "$weft" submit --bulk bulk.jsonl --json
is "$(grep -c '"duplicate":true' <<<"$out")" 2345 'its keys are known'
has "$out" '^\{"line":2345,.*"duplicate":true' 'each with its line'
is "$(tail -n 1 <<<"$out")" '{"accepted":0,"duplicates":2345,"refused":0}' 'summed up at the end'
printf '%s\n' '{"kind":"good"}' '{"kind":' '' '{"kind":"x","colour":1}' '{"kind":"bad name"}' \
    '{"payload":1}' >mixed.jsonl
exits 1 'a file with bad lines' "$weft" submit --bulk mixed.jsonl
is "$(wc -l <<<"$out")" 1 'the good ones are submitted'
has "$err" '^weft: mixed.jsonl:2: ' 'bad JSON is told with its line'
has "$err" '^weft: mixed.jsonl:4: .*colour' 'and an unknown field'
has "$err" '^weft: mixed.jsonl:5: ' 'and what the engine refuses'
has "$err" '^weft: accepted 1, duplicates 0, refused 4$' 'the summary counts what was refused'
exits 1 '--lane stands in' "$weft" submit --bulk mixed.jsonl --lane spare
has "$("$weft" ls --lane spare)" ' good +ready' 'where a line names none'
exits 2 'other options do not' "$weft" submit --bulk mixed.jsonl --kind normal
exits 1 'with --json' "$weft" submit --bulk mixed.jsonl --json
is "$(grep -c '"error"' <<<"$out")" 4 'every line is answered'
has "$out" '^\{"line":4,"error":.*colour' 'an error has the number of its line'
is "$(echo '{"kind":"z"}' | "$weft" submit --bulk - | wc -l)" 1 'from standard input'

# ---- ls ----

exits 0 'ls' "$weft" ls
has "$out" '^ID +LANE +KIND +STATE +TRY +AGE +DETAIL$' 'has titles'
is "$(wc -l <<<"$out")" 51 'and 50 rows'
exits 0 'ls --limit' "$weft" ls --limit 3 --json
json "$out" 'len(v["items"]) == 3 and v["next"]' '--json has items and next'
next=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["next"])' "$out")
exits 0 'ls --after' "$weft" ls --limit 3 --after "$next" --json
json "$out" "all(i['id'] < '$next' for i in v['items'])" 'goes on'
exits 0 'ls --limit above a page' "$weft" ls --lane bulk --limit 1500
is "$(wc -l <<<"$out")" 1501 'asks for as many pages as it takes'
exits 0 'ls --all' "$weft" ls --all --lane bulk --json
is "$(wc -l <<<"$out")" 2345 'streams all pages'
exits 0 'each line is JSON' python3 -c '
import json, sys
for line in open(sys.argv[1]):
    assert json.loads(line)["lane"] == "bulk"' "$scratch/.out"
is "$("$weft" ls --all --lane bulk | grep -c LANE)" 1 'titles are printed once'
exits 0 'by kind' "$weft" ls -k resize --json
json "$out" "[i['id'] for i in v['items']] == ['$full']" 'one'
exits 0 'by tag' "$weft" ls --tag size=9 --json
json "$out" "[i['id'] for i in v['items']] == ['$full']" 'one'
exits 0 'by key' "$weft" ls --key img-1 --json
json "$out" 'len(v["items"]) == 1' 'one'
exits 0 'by state' "$weft" ls --state delayed --tenant acme --json
json "$out" 'len(v["items"]) == 1' 'one'
exits 2 'a state that is none' "$weft" ls --state done
exits 2 'a cursor that is none' "$weft" ls --after nonsense
exits 0 'another namespace' "$weft" ls --namespace other --json
json "$out" 'v["items"] == [] and v["next"] is None' 'is empty'
is "$(WEFT_NAMESPACE=other "$weft" ls | wc -l)" 1 'also by the environment'

# ---- what failed, and when ----

"$weft" submit -k boom -l boom --max-attempts 1 </dev/null >boom.txt
boom=$(cat boom.txt)
"$weft" work --lane boom --name w-boom --drain -- \
    sh -c 'printf "first\n  second\nthe last line\n\n" >&2; exit 3' >work.log 2>&1 </dev/null ||
    true
exits 0 'ls of what failed within the hour' "$weft" ls --state failed --since 1h --lane boom
has "$out" "^$boom +boom +boom +failed .* exit_3: the last line$" 'has the last line of the error'
exits 0 'show' "$weft" show "$boom"
has "$out" '^error +exit_3: first$' 'shows the first line of the error'
has "$out" '^ {14}  second$' 'and each of the others'
has "$out" '^ {14}the last line$' 'on a line of its own'
for filter in '--error-class exit_3' '--worker w-boom' '--since 1h -l boom' \
    '--state failed --until 0s' '--since 2020-01-01T00:00:00Z -k boom'; do
    # shellcheck disable=SC2086
    exits 0 "ls $filter" "$weft" ls $filter --json
    json "$out" "[i['id'] for i in v['items']] == ['$boom']" 'finds the one'
done
for filter in '--error-class exit_4' '--worker w-none' '--until 1h -l boom' \
    '--state failed --until 1h' '--state failed --since 2999-01-01T00:00:00Z'; do
    # shellcheck disable=SC2086
    exits 0 "ls $filter" "$weft" ls $filter --json
    json "$out" 'v["items"] == []' 'finds none'
done
exits 2 'a since that is none' "$weft" ls --since yesterday
has "$err" 'how long ago, like 1h' 'is told how it is written'
exits 2 'a since after the until' "$weft" ls --since 1h --until 2h
exits 0 'replay of what failed long ago' "$weft" replay --state failed --lane boom --until 1h --yes
is "$out" 'replayed 0 executions' 'takes none'
exits 0 'replay of what failed within the hour' \
    "$weft" replay --state failed --lane boom --since 1h --yes
is "$out" 'replayed 1 execution' 'takes it'

# ---- short ids ----

exits 0 'show by the two ends of an id' "$weft" show "${first:0:8}${first:9:2}..${first: -6}"
has "$out" "^id +$first$" 'finds it'
exits 0 'show without dashes' "$weft" show "${first//-/}"
has "$out" "^id +$first$" 'finds it, too'
exits 2 'show by what many have' "$weft" show "${first:0:5}"
has "$err" "^weft: '${first:0:5}' fits more than 5 executions:$" 'says so'
is "$(grep -c "^  ${first:0:5}.*, .*, " <<<"$err")" 5 'and lists five with kind, state and age'
exits 3 'show by what none has' "$weft" show ffffffff
has "$err" "there is no execution with the id 'ffffffff'" 'is told'
exits 2 'three digits' "$weft" show 01a
has "$err" 'at least its first 4 digits' 'are too few'
exits 3 'a flow that is none' "$weft" ls --flow ffffffff
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    script -qec "$(printf %q "$weft") ls -k boom" typed >/dev/null </dev/null
    shown=$(grep -o '[0-9a-f]*\.\.[0-9a-f]*' typed)
    exits 0 'what ls shows on a terminal' "$weft" show "$shown"
    has "$out" "^id +$boom$" 'is taken by the others'
fi

# ---- priority, revoke, deadline ----

exits 0 'priority' "$weft" priority "$boom" 7
is "$out" "$boom has another priority" 'is told'
exits 0 'a negative one' "$weft" priority "$boom" -- -7
exits 0 'the same again' "$weft" priority "$boom" -- -7
is "$out" "$boom was so already" 'changes nothing'
exits 0 'deadline' "$weft" deadline "$boom" 2h --json
json "$out" 'v["items"][0]["changed"]' 'in two hours'
exits 0 'show' "$weft" show "$boom" --json
json "$out" 'v["priority"] == -7 and v["deadline_at"] > v["created_at"]' 'has both'
exits 0 'no deadline any more' "$weft" deadline "$boom" none
exits 0 'show' "$weft" show "$boom" --json
json "$out" 'v["deadline_at"] is None' 'has none'
exits 6 'revoke of one that nobody has' "$weft" revoke "$boom"
has "$err" 'only a running execution has a lease' 'is refused'
exits 2 'a priority that is none' "$weft" priority "$boom" high
exits 2 'a deadline that is none' "$weft" deadline "$boom" soon
exits 2 'no priority at all' "$weft" priority "$boom"
exits 3 'priority of what is not there' "$weft" priority $nobody 1

# ---- show ----

exits 3 'show what is not there' "$weft" show $nobody
has "$err" 'there is no execution' 'is told'
exits 2 'an id that is none' "$weft" show nonsense
exits 4 'a wait that is over' "$weft" show "$first" --wait=100ms
has "$err" 'has not ended: it is ready' 'is told'
exits 4 'submit --wait' "$weft" submit -k never --wait=100ms
has "$err" "${uuid:1:-1}" 'tells the id on stderr'
is "$out" '' 'and keeps stdout for the result'
exits 3 'a result that is not there' "$weft" show "$first" --result

# ---- cancel, replay ----

exits 0 'cancel' "$weft" cancel "$first" --reason 'not needed'
is "$out" "$first cancelled" 'by id'
exits 0 'cancel again' "$weft" cancel "$first"
is "$out" "$first was so already" 'changes nothing'
exits 0 'show' "$weft" show "$first"
has "$out" '^reason +not needed$' 'keeps the reason'
exits 1 'show --wait' "$weft" show "$first" --wait
has "$err" "cancelled: not needed" 'tells how it ended'
exits 3 'one of several' "$weft" cancel "$full" $nobody
has "$out" "^$full cancelled" 'is not kept from it'
has "$err" "^weft: $nobody: " 'by another that is not there'
exits 0 'replay' "$weft" replay "$first" --json
json "$out" 'v["items"][0]["state"] == "ready" and v["items"][0]["changed"]' 'makes it ready'
exits 6 'replay of a living one' "$weft" replay "$first"
exits 6 'with --json' "$weft" replay "$first" --json
json "$out" 'v["items"][0]["error"]["code"] == "not_live"' 'the item has the error'

exits 2 'by a filter' "$weft" cancel --lane copies
has "$err" 'would cancel 2500 executions: say --yes' 'it must be confirmed'
exits 0 'with --yes' "$weft" cancel --lane copies --yes
is "$out" 'cancelled 2500 executions' 'the sum of all of them is printed once'
exits 0 'and again' "$weft" cancel --lane copies --yes --json
json "$out" 'v == {"matched": 0, "changed": 0, "more": False, "next": None}' 'nothing is left'
exits 0 'replay by a filter' "$weft" replay --lane copies --state cancelled --yes
is "$out" 'replayed 2500 executions' 'all of them'
exits 2 'a cursor that is none' "$weft" cancel --lane copies --yes --after nonsense
exits 2 'a cursor with ids' "$weft" cancel "$first" --after "$first"
exits 2 'an empty filter' "$weft" cancel --yes
exits 2 'both ids and a filter' "$weft" cancel "$first" --lane mail
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    printf 'n\n' | script -qec "$(printf %q "$weft") cancel --lane copies" typed >/dev/null || true
    has "$(cat typed)" 'cancel 2500 executions\? \[y/N\]' 'on a terminal it asks'
    has "$(cat typed)" 'nothing was done' 'and takes no for an answer'
    printf 'y\n' | script -qec "$(printf %q "$weft") cancel --lane copies" typed >/dev/null
    has "$(cat typed)" 'cancelled 2500 executions' 'and yes'
fi

# ---- exit codes ----

for command in show cancel replay revoke 'flow show' 'flow dot' 'flow cancel' 'flow rm' workers; do
    # shellcheck disable=SC2086
    exits 3 "$command of what is not there" "$weft" $command $nobody
done
exits 3 'priority of what is not there' "$weft" priority $nobody 1
exits 3 'deadline of what is not there' "$weft" deadline $nobody +1h
exits 3 'goodbye of what is not there' "$weft" workers nobody --goodbye
for command in ls counts lanes workers replicas scanners 'flow ls' "show $nobody" \
    "cancel $nobody" 'cancel --lane x --yes' "priority $nobody 1" "revoke $nobody" \
    "deadline $nobody none" 'submit -k x' 'workers nobody --goodbye'; do
    # shellcheck disable=SC2086
    exits 4 "$command without a server" \
        env -u WEFT_STORE "$weft" $command --server http://127.0.0.1:1
done

# ---- What came of it ----

"$WEFT_BUILD/examples/hello" "sqlite:$scratch/hello.db" >/dev/null
export WEFT_STORE=sqlite:$scratch/hello.db
exits 0 'what succeeded' "$weft" ls --state succeeded --json
json "$out" 'len(v["items"]) == 3' 'is listed'
id=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["items"][0]["id"])' "$out")
has "$("$weft" show "$id" --result)" '^Hello, ' 'show --result writes the bytes'
is "$("$weft" show "$id" --result | tail -c 1)" '!' 'and no more, in a pipe'
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    script -qec "$(printf %q "$weft") show $id --result; echo next" typed >/dev/null </dev/null
    has "$(tr -d '\r' <typed)" '^next' 'on a terminal a newline follows'
fi
exits 0 'show --wait of one that succeeded' "$weft" show "$id" --wait
has "$out" '^result +Hello, .*bytes' 'shows its result'
exits 0 'submit --wait with a known key' "$weft" submit -k greet --key hello-1 --wait Ada
is "$out" 'Hello, Ada!' 'prints the result'
plan
