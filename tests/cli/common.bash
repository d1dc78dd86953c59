# SPDX-License-Identifier: Apache-2.0
#
# What the scripts of this folder share. WEFT_BUILD is the build folder. Each script works in a
# scratch folder of its own, on stores of its own, with nothing of the caller's settings.

set -euo pipefail
export LC_ALL=C.UTF-8

for name in $(compgen -e | grep '^WEFT_' | grep -v -e '^WEFT_BUILD$' -e '^WEFT_TEST_'); do
    unset "$name"
done
unset COLUMNS NO_COLOR || true
export TERM=xterm

scratch=$(mktemp -d)
# From a folder whose name a shell would take apart: neither the command nor the tests may.
mkdir "$scratch/it's a folder"
ln -s "$WEFT_BUILD/weft" "$scratch/it's a folder/weft"
weft="$scratch/it's a folder/weft"
store=sqlite:$scratch/weft.db
if [[ ${WEFT_TEST_STORE:-sqlite} == pg ]]; then
    separator='?'
    [[ $WEFT_TEST_PG != *\?* ]] || separator='&'
    store="$WEFT_TEST_PG${separator}weft_schema=cli_$$"
fi
server_pid=
points=0
situation= # what the last command of `exits` stands for
out=
err=
cd "$scratch"

leave() {
    local status=$?
    if [[ -n $server_pid ]]; then
        kill "$server_pid" 2>/dev/null || true
        wait "$server_pid" 2>/dev/null || true
    fi
    rm -rf "$scratch"
    exit "$status"
}
trap leave EXIT

# A server as a newcomer starts it, on any port: sets url; what it says is in hello.txt.
serve_hello() {
    : >hello.txt
    "$weft" serve --listen 127.0.0.1:0 --hello >>hello.txt 2>serve.log &
    server_pid=$!
    url=
    for ((i = 0; i < 1200; i++)); do
        url=$(grep -o 'http://127.0.0.1:[0-9]*' hello.txt | head -n 1 || true)
        if [[ -n $url ]]; then break; fi
        sleep 0.05
    done
}

ok() {
    points=$((points + 1))
    echo "ok $points - $*"
}

bad() {
    points=$((points + 1))
    echo "not ok $points - $1"
    shift
    printf '%s\n' "$@" | sed 's/^/# /'
}

# run WORD...: fills out, err and status.
run() {
    status=0
    situation=
    "$@" >"$scratch/.out" 2>"$scratch/.err" </dev/null || status=$?
    out=$(tr -d '\0' <"$scratch/.out")
    err=$(tr -d '\0' <"$scratch/.err")
}

# name_check TEXT EXPECTATION: sets name. What the last command of `exits` wrote is named after it,
# so that the line of a check has the condition and the expectation.
name_check() {
    name=$2
    if [[ -n $situation && ($1 == "$out" || $1 == "$err") ]]; then name="$situation: $2"; fi
}

# has TEXT PATTERN EXPECTATION: the text has a line that fits the extended regular expression.
has() {
    local name
    name_check "$1" "$3"
    if grep -Eq -e "$2" <<<"$1"; then ok "$name"; else bad "$name" "wanted: $2" "got: $1"; fi
}

lacks() {
    local name
    name_check "$1" "$3"
    if grep -Eq -e "$2" <<<"$1"; then bad "$name" "not wanted: $2" "got: $1"; else ok "$name"; fi
}

is() {
    local name
    name_check "$1" "$3"
    if [[ $1 == "$2" ]]; then ok "$name"; else bad "$name" "wanted: $2" "got: $1"; fi
}

# exits CODE SITUATION WORD...: runs it and looks at the exit code.
exits() {
    local want=$1 name=$2
    shift 2
    run "$@"
    situation=$name
    if [[ $status -eq $want ]]; then
        ok "$name: exit code $want"
    else
        bad "$name: exit code $want" "wanted exit code $want, got $status: $*" "$out" "$err"
    fi
}

# json TEXT PROGRAM EXPECTATION: the text is JSON, and the Python expression over `v` is true of it.
json() {
    local name
    name_check "$1" "$3"
    if python3 -c '
import json, sys
v = json.loads(sys.argv[1])
sys.exit(0 if eval(sys.argv[2]) else 1)' "$1" "$2" 2>"$scratch/.json"; then
        ok "$name"
    else
        bad "$name" "wanted: $2" "got: $1" "$(cat "$scratch/.json")"
    fi
}

# counted LANE EXPRESSION NAME: as `json` of the counts of a lane, or of all (an empty LANE). A
# server counts at most once a second, so the answer may be of a moment before: it is asked for until
# it holds, at most 30 s.
counted() {
    local word=()
    [[ -n $1 ]] && word=(--lane "$1")
    for ((i = 0; i < 300; i++)); do
        run "$weft" counts --json "${word[@]}"
        python3 -c \
            'import json, sys; v = json.loads(sys.argv[1]); sys.exit(not eval(sys.argv[2]))' \
            "$out" "$2" 2>/dev/null && break
        sleep 0.1
    done
    json "$out" "$2" "$3"
}

plan() {
    echo "1..$points"
}
