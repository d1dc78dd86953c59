#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# weft mock-llm: every path, streams, failures at the asked rate, and what is refused.

source "$(dirname "$0")/common.bash"

# start WORD...: sets url. The last one is ended first.
start() {
    if [[ -n $server_pid ]]; then
        kill "$server_pid"
        wait "$server_pid" || true
    fi
    : >hello.txt
    "$weft" mock-llm --listen 127.0.0.1:0 "$@" >hello.txt &
    server_pid=$!
    url=
    for ((i = 0; i < 400; i++)); do
        url=$(grep -o 'http://.*/v1' hello.txt || true)
        if [[ -n $url ]]; then break; fi
        sleep 0.05
    done
}

# ask PATH BODY: the body of the answer is in $out, its status in $status.
ask() {
    out=$(curl -sS --max-time 20 -H 'Content-Type: application/json' -w '\n%{http_code}' \
        ${2:+--data-binary "$2"} "$url$1")
    status=${out##*$'\n'}
    out=${out%$'\n'*}
}

# field PATH: of the JSON in $out, as Python writes it.
field() {
    python3 -c 'import json, sys
value = json.loads(sys.stdin.read())
for part in sys.argv[1].split("."):
    value = value[int(part)] if isinstance(value, list) else value[part]
print(value)' "$1" <<<"$out"
}

messages='[{"role":"system","content":"be brief"},{"role":"user","content":"one two three"}]'
chat='{"model":"m","messages":'$messages'}'
start
has "$(cat hello.txt)" '^mock-llm listens on http://127.0.0.1:[0-9]+/v1$' 'it says where it listens'

ask /models
is "$(field data.0.id)" mock 'GET /v1/models'
ask /chat/completions "$chat"
is "$status" 200 'a chat'
is "$(field choices.0.message.content)" 'one two three' 'the answer is an echo'
is "$(field usage.prompt_tokens) $(field usage.completion_tokens) $(field usage.total_tokens)" \
    '5 3 8' 'its usage'
first=$out
ask /chat/completions "$chat"
is "$out" "$first" 'the same request gets the same answer'
parts='[{"type":"text","text":"in \"parts\" é"}]'
ask /chat/completions '{"model":"m","messages":[{"role":"user","content":'"$parts"'}]}'
is "$(field choices.0.message.content)" 'in "parts" é' 'a message in parts'
ask /completions '{"model":"m","prompt":"once upon"}'
is "$(field object) $(field choices.0.text)" 'text_completion once upon' 'a completion'
ask /responses '{"model":"m","input":"say so"}'
is "$(field status) $(field output.0.content.0.text) $(field usage.output_tokens)" \
    'completed say so 2' 'a response'
ask /embeddings '{"model":"m","input":["a b","c"],"dimensions":4}'
sizes=$(python3 -c 'import json, sys
print([len(item["embedding"]) for item in json.load(sys.stdin)["data"]])' <<<"$out")
is "$sizes" '[4, 4]' 'embeddings'
floats=$(field data.0.embedding)
ask /embeddings '{"model":"m","input":"a b","dimensions":4,"encoding_format":"base64"}'
same=$(python3 -c 'import base64, json, struct, sys
print(list(struct.unpack("<4f", base64.b64decode(sys.argv[1]))) == json.loads(sys.argv[2]))' \
    "$(field data.0.embedding)" "$floats")
is "$same" True 'the same embedding in base64'

# ---- streams ----
stream='{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":'
stream+=$messages'}'
ask /chat/completions "$stream"
is "$(grep . <<<"$out" | tail -n 1)" 'data: [DONE]' 'a stream ends in [DONE]'
whole=$(python3 -c 'import json, sys
chunks = [json.loads(line[6:]) for line in sys.stdin if line.startswith("data: {")]
print("".join(c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"]),
      chunks[-1]["usage"]["completion_tokens"],
      chunks[-2]["choices"][0]["finish_reason"])' <<<"$out")
is "$whole" 'one two three 3 stop' 'its chunks are the answer'
ask /responses '{"model":"m","input":"say so","stream":true}'
has "$out" '^event: response.completed$' 'a stream of a response is completed'
is "$(grep -c '^event: response.output_text.delta$' <<<"$out")" 2 'its words come one by one'

# ---- what is refused ----
ask /chat/completions '{"model":'
is "$status $(field error.type)" '400 invalid_request_error' 'no JSON'
ask /chat/completions '{"messages":[]}'
is "$status" 400 'no model'
ask /none '{}'
is "$status" 404 'no such path'
ask /chat/completions
is "$status" 405 'no POST'
# status_of WORD...: of a request by curl.
status_of() {
    curl -sS --max-time 20 -o /dev/null -w '%{http_code}' "$@"
}
is "$(status_of -H 'Transfer-Encoding: chunked' -d '{}' "$url/completions")" 411 'a body in chunks'
head -c 3000000 /dev/zero | tr '\0' x | sed 's/.*/{"model":"m","prompt":"&"}/' >large.json
is "$(status_of -H 'Expect: 100-continue' --data-binary @large.json "$url/completions")" 200 \
    'a large body after 100 Continue'
exits 2 'a rate above 1' "$weft" mock-llm --fail-rate 2
exits 2 'a bad address' "$weft" mock-llm --listen nowhere
has "$err" 'cannot listen' 'it says why'

# ---- failures and time ----
start --fail-rate 0.5 --tokens 7
ask /chat/completions "$chat"
counts=$(for ((i = 0; i < 200; i++)); do
    curl -sS -o answer.json -D head.txt -w '%{http_code}\n' -d "$chat" "$url/chat/completions"
    if grep -q ' 429 ' head.txt; then grep -i '^retry-after: 1' head.txt; fi
done | tr -d '\r' | sort | uniq -c | awk '{ print $2 $3, $1 }' | sort)
failed=$(awk '/^(429|500)/ { sum += $2 } END { print sum + 0 }' <<<"$counts")
if ((failed > 60 && failed < 140)); then ok 'about half of them fail'; else bad "$counts"; fi
waits=$(awk '/^[Rr]etry/ { print $2 }' <<<"$counts")
is "$waits" "$(awk '/^429/ { print $2 }' <<<"$counts")" 'each 429 has a Retry-After'
start --tokens 7 --latency 300ms --stream-delay 50ms
from=$(date +%s%N)
ask /chat/completions "$chat"
took=$((($(date +%s%N) - from) / 1000000))
if ((took >= 300)); then ok 'an answer takes its time'; else bad "it took $took ms"; fi
is "$(field choices.0.message.content)" 'one two three one two three one' 'as many words as wanted'
from=$(date +%s%N)
ask /chat/completions "$stream"
took=$((($(date +%s%N) - from) / 1000000))
if ((took >= 750)); then ok 'a stream takes its time'; else bad "it took $took ms"; fi

kill -TERM "$server_pid"
wait "$server_pid" && ok 'SIGTERM ends it' || bad 'SIGTERM ends it'
server_pid=

plan
