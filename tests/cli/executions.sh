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
exits 0 'and again' "$weft" submit --bulk bulk.jsonl --json
is "$(grep -c '"duplicate":true' <<<"$out")" 2345 'its keys are known'
printf '%s\n' '{"kind":"good"}' '{"kind":' '' '{"kind":"x","colour":1}' '{"kind":"bad name"}' \
    '{"payload":1}' >mixed.jsonl
exits 1 'a file with bad lines' "$weft" submit --bulk mixed.jsonl
is "$(wc -l <<<"$out")" 1 'the good ones are submitted'
has "$err" '^weft: mixed.jsonl:2: ' 'bad JSON is told with its line'
has "$err" '^weft: mixed.jsonl:4: .*colour' 'and an unknown field'
has "$err" '^weft: mixed.jsonl:5: ' 'and what the engine refuses'
exits 1 '--lane stands in' "$weft" submit --bulk mixed.jsonl --lane spare
has "$("$weft" ls --lane spare)" ' good +ready' 'where a line names none'
exits 2 'other options do not' "$weft" submit --bulk mixed.jsonl --kind normal
exits 1 'with --json' "$weft" submit --bulk mixed.jsonl --json
is "$(grep -c '"error"' <<<"$out")" 4 'every line is answered'
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
is "$out" '2500 cancelled' 'all of them'
exits 0 'and again' "$weft" cancel --lane copies --yes --json
json "$out" 'v["changed"] == 0 and not v["more"]' 'nothing is left'
exits 0 'replay by a filter' "$weft" replay --lane copies --state cancelled --yes
is "$out" '2500 replayed' 'all of them'
exits 2 'an empty filter' "$weft" cancel --yes
exits 2 'both ids and a filter' "$weft" cancel "$first" --lane mail
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    printf 'n\n' | script -qec "$(printf %q "$weft") cancel --lane copies" typed >/dev/null || true
    has "$(cat typed)" 'cancel 2500 executions\? \[y/N\]' 'on a terminal it asks'
    has "$(cat typed)" 'nothing was done' 'and takes no for an answer'
    printf 'y\n' | script -qec "$(printf %q "$weft") cancel --lane copies" typed >/dev/null
    has "$(cat typed)" '2500 cancelled' 'and yes'
fi

# ---- What came of it ----

"$WEFT_BUILD/examples/hello" "sqlite:$scratch/hello.db" >/dev/null
export WEFT_STORE=sqlite:$scratch/hello.db
exits 0 'what succeeded' "$weft" ls --state succeeded --json
json "$out" 'len(v["items"]) == 3' 'is listed'
id=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["items"][0]["id"])' "$out")
has "$("$weft" show "$id" --result)" '^Hello, ' 'show --result writes the bytes'
exits 0 'show --wait of one that succeeded' "$weft" show "$id" --wait
has "$out" '^result +Hello, .*bytes' 'shows its result'
exits 0 'submit --wait with a known key' "$weft" submit -k greet --key hello-1 --wait Ada
is "$out" 'Hello, Ada!' 'prints the result'
plan
