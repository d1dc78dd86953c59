#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# weft batch, weft file and weft model: from a file to its answers, in a store without a server and
# through a server whose model echoes; and mistakes on the way.

source "$(dirname "$0")/common.bash"
export WEFT_STORE=$store

mock_pid=
stop_all() {
    if [[ -n $mock_pid ]]; then
        kill "$mock_pid" 2>/dev/null || true
        wait "$mock_pid" 2>/dev/null || true
    fi
    leave
}
trap stop_all EXIT

# lines COUNT MODEL: the input of a batch.
lines() {
    python3 -c 'import json, sys
for i in range(int(sys.argv[1])):
    print(json.dumps({"custom_id": f"c{i}", "method": "POST", "url": "/v1/chat/completions", "body":
        {"model": sys.argv[2], "messages": [{"role": "user", "content": f"line {i}"}]}}))' "$1" "$2"
}

# custom_ids FILE: of its lines, in their order.
custom_ids() {
    python3 -c 'import json, sys
for line in open(sys.argv[1]): print(json.loads(line)["custom_id"])' "$1"
}

lines 300 echo >in.jsonl
lines 3 echo >short.jsonl
{
    head -n 2 short.jsonl
    echo '{"custom_id":'
    head -n 1 short.jsonl
} >bad.jsonl
custom_ids in.jsonl >names

# files_work: what holds of files in a store and through a server alike.
files_work() {
    exits 0 "$1: a file is put" "$weft" file put in.jsonl
    has "$out" '^file-[0-9a-f]{32}$' 'its id is printed'
    file=$out
    exits 0 "$1: the list of files" "$weft" file ls
    has "$out" "^$file +in.jsonl +[0-9]+ +300 +0 " 'it has the file'
    exits 0 "$1: a file as JSON" "$weft" file show "$file" --json
    json "$out" '(v["requests"], v["errors"], v["file_id"][:5]) == (300, None, "file-")' \
        'its lines'
    rm -f copy.jsonl
    exits 0 "$1: its bytes" "$weft" file get "$file" -o copy.jsonl
    exits 0 "$1: they are those of the file" cmp in.jsonl copy.jsonl
    is "$(find . -name 'copy.jsonl*' | wc -l)" 1 "$1: no other file is left"
    exits 1 "$1: a file with mistakes" "$weft" file put bad.jsonl
    has "$err" '^  line 3: ' 'the line without its end is named'
    has "$err" '^  line 4: .*custom_id' 'the line that repeats a custom_id is named'
    exits 2 "$1: an empty file" "$weft" file put /dev/null
    has "$err" 'the file is empty' 'it says so'
    exits 2 "$1: a file that is not there" "$weft" file put nothing.jsonl
    has "$err" 'cannot read nothing.jsonl: No such file or directory' 'it says so'
    exits 2 "$1: a folder" "$weft" file put .
    exits 0 "$1: a file is removed" "$weft" file rm "$file"
    exits 3 "$1: a file that was removed" "$weft" file get "$file"
    exits 2 "$1: no id of a file" "$weft" file get nonsense
    exits 0 "$1: a model is made" "$weft" model put echo --endpoint mock --max-running 50
    exits 0 "$1: and changed" "$weft" model put echo --max-running 60 --json
    json "$out" '(v["items"] if "items" in v else [v])[0]["endpoint"] == "mock"' 'the rest stays'
    exits 0 "$1: the models" "$weft" model ls
    has "$out" '^echo +mock +echo +60' 'the list has it'
    exits 2 "$1: a model without an endpoint" "$weft" model put none
    exits 3 "$1: a model that is not there" "$weft" model rm none
}

# ---- In a store without a server ----

exits 0 'the store is made' "$weft" migrate
files_work store
exits 0 'store: a batch' "$weft" batch run short.jsonl
batch=$out
exits 0 'store: it waits for a server' "$weft" batch show "$batch" --json
json "$out" '(v["status"], v["total"], v["succeeded"]) == ("in_progress", 3, 0)' \
    'its lines are there'
exits 0 'store: it is cancelled' "$weft" batch cancel "$batch"
exits 0 'store: its errors' "$weft" batch errors "$batch" -o errors.jsonl
is "$(wc -l <errors.jsonl)" 3 'store: all lines of a cancelled batch are in the errors'
exits 0 'store: it is deleted' "$weft" batch rm "$batch"
exits 3 'store: a batch that was deleted' "$weft" batch show "$batch"
exits 0 'store: the model is removed' "$weft" model rm echo

# ---- Through a server ----

"$weft" mock-llm --listen 127.0.0.1:0 >mock.txt &
mock_pid=$!
serve_hello
export WEFT_SERVER=$url
for ((i = 0; i < 400; i++)); do
    mock=$(grep -o 'http://.*/v1' mock.txt || true)
    if [[ -n $mock ]]; then break; fi
    sleep 0.05
done
exits 0 'the endpoint is made' "$weft" endpoint put mock --url "$mock" --private

exits 1 'a batch whose model is not there' "$weft" batch run short.jsonl
has "$err" '^  line 1: .*model' 'its lines are named'
exits 3 'a model that is not there for all lines' "$weft" batch run short.jsonl --model none
has "$err" "there is no model 'none'" 'it is said before the upload'
has "$err" '^hint: .*weft model put' 'and what to do'

files_work server
exits 0 'a batch that is followed' "$weft" batch run in.jsonl --watch --metadata team=red
has "$out" '^batch_[0-9a-f]{32}$' 'its id is printed'
has "$out" '^completed: 300 of 300 lines succeeded$' 'its end is printed'
has "$err" '^completed: 300 of 300 lines have ended$' 'lines say how far it is'
lacks "$err" '#|\[' 'there is no bar without a terminal'
batch=$(head -n 1 <<<"$out")
exits 0 'its results' "$weft" batch results "$batch" -o out.jsonl
custom_ids out.jsonl >answered
exits 0 'the answers are in the order of the lines' cmp names answered
has "$(sed -n 8p out.jsonl)" '"content":"line 7"' 'each answer is that of its line'
exits 0 'its errors' "$weft" batch errors "$batch"
is "$out" '' 'there are none'
exits 0 'it is shown' "$weft" batch show "$batch"
has "$out" '^metadata +\{"team":"red"\}$' 'with its metadata'
has "$out" '^echo +300 +300 +0 +0$' 'and its models'
exits 0 'the list of what is completed' "$weft" batch ls --status completed --json
json "$out" '[b["batch_id"] for b in v["items"]] == ["'"$batch"'"]' \
    'it is in the list'
exits 6 'a batch that has ended is not cancelled' "$weft" batch cancel "$batch"
exits 0 'a batch that has nothing to retry' "$weft" batch retry "$batch"
has "$out" 'nothing to retry' 'it says so'

# a file that was uploaded, lines from a pipe, another model in all lines
file=$("$weft" file put short.jsonl)
exits 0 'a batch of an uploaded file' "$weft" batch run "$file" --watch --json
json "$(tail -n 1 <<<"$out")" '(v["status"], v["succeeded"]) == ("completed", 3)' 'it is made'
lines 40 other | "$weft" batch run - --model echo --watch >piped.txt 2>/dev/null
has "$(cat piped.txt)" '^completed: 40 of 40 lines succeeded$' \
    'lines of a pipe get the model of the command line'
run "$weft" batch show "$(head -n 1 piped.txt)" --json
exits 0 'what was uploaded of them' "$weft" file get "$(grep -o 'file-[0-9a-f]\{32\}' <<<"$out")"
is "$(grep -c '"model": "echo"\|"model":"echo"' <<<"$out")" 40 'all of them have it'
exits 0 'a key' "$weft" batch run "$file" --key k1
first=$out
exits 0 'the same key' "$weft" batch run "$file" --key k1
is "$out" "$first" 'it gives the same batch'

# lines that fail, and succeed when they are tried again
exits 0 'a path that the model does not have' "$weft" endpoint put mock --url "${mock%/v1}/nothing"
exits 1 'a batch whose lines fail' "$weft" batch run short.jsonl --watch
has "$out" '^completed: 0 of 3 lines succeeded$' 'it is completed'
has "$err" '^weft: 3 failed' 'its failures are counted'
has "$err" '^hint: .*weft batch errors' 'and where they are'
batch=$(head -n 1 <<<"$out")
exits 0 'the lines that failed' "$weft" batch errors "$batch"
has "$out" '"status_code":404' 'they have what was answered'
exits 0 'the path is put right' "$weft" endpoint put mock --url "$mock"
exits 0 'they are tried again' "$weft" batch retry "$batch" --watch
has "$out" '^3 lines run again$' 'it says how many'
has "$out" '^completed: 3 of 3 lines succeeded$' 'and they succeed'

# ---- What goes wrong ----

exits 1 'a batch of a file with mistakes' "$weft" batch run bad.jsonl
has "$err" 'has mistakes in 2 of its lines' 'it is refused'
has "$err" '^  line 3: ' 'with the line'
exits 0 'the files after that' "$weft" file ls
lacks "$out" ' bad.jsonl .*now' 'its upload is gone'
exits 2 'a window that is none' "$weft" batch run "$file" --window soon
exits 3 'a file that is not there' "$weft" batch run file-00000000000070008000000000000000
exits 2 'no batch' "$weft" batch show 4711
exits 2 'an option of another action' "$weft" batch show "$batch" --window 1h
exits 2 'a place that cannot be written' "$weft" batch results "$batch" -o /dev/full/x
python3 -c '
import socket
listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen()
print(listener.getsockname()[1], flush=True)
peer, _ = listener.accept()
while b"\r\n\r\n" not in peer.recv(65536): pass
peer.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
got = 0
while got < 1 << 20: got += len(peer.recv(65536))
peer.close()' >port.txt &
dying=$!
for ((i = 0; i < 400; i++)); do
    if [[ -s port.txt ]]; then break; fi
    sleep 0.05
done
lines 30000 echo >large.jsonl
exits 4 'a server that dies in the middle of an upload' "$weft" --server \
    "http://127.0.0.1:$(cat port.txt)" file put large.jsonl
wait "$dying" || true
has "$err" 'the upload broke off after [0-9]+ bytes' 'it says when'
has "$err" '^hint: upload it again' 'and what to do'
exits 4 'a server that is not there' "$weft" --server "http://127.0.0.1:$(cat port.txt)" \
    batch run short.jsonl
has "$err" 'refused' 'it says so'
plan
