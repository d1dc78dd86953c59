#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# weft work: commands that report what they spend, by writing totals to WEFT_USAGE_FILE.

source "$(dirname "$0")/work.bash"
source "$(dirname "$0")/common.bash"
export WEFT_STORE=$store weft

# used BUDGET: how many tokens are used of it.
used() {
    "$weft" budget "$1" --json |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["dimensions"]["tokens"]["used"])'
}
uses() { [[ $(used "$1") == "$2" ]]; }
complaints() { grep -c 'usage not reported' <<<"$err" || true; }
is_there() { [[ -e $1 ]]; }

# ---- While a command runs, and when it has ended ----

cat >spend.sh <<'END'
wait_for() { while [ ! -e "$1" ]; do sleep 0.05; done; }
echo "tokens 300" >"$WEFT_USAGE_FILE"
wait_for more
printf 'tokens 500\npages 2\n' >>"$WEFT_USAGE_FILE"
wait_for half
printf 'tokens 9' >"$WEFT_USAGE_FILE"
wait_for end
printf '00\npages 3' >>"$WEFT_USAGE_FILE"
echo done
END

exits 0 'the store is made' "$weft" migrate
exits 0 'a budget is made' "$weft" budget team --hard tokens=10k,pages=100 --estimate tokens=100
id=$(submit -k spend --budget team 1)
in_background --kind spend --max 1 -- sh "$scratch/spend.sh"
if until_true uses team 300; then
    ok 'totals are reported while the command runs'
else
    bad 'totals are reported while the command runs' "$(cat work.out work.err)"
fi
touch more
if until_true uses team 500; then
    ok 'the last line of a name counts'
else
    bad 'the last line of a name counts' "$(used team)"
fi
has "$("$weft" budget team)" '^pages +2 ' 'each name is a dimension'
touch half end
ends 0 'the worker ends'
is "$(used team)" 900 'the last totals are reported when the command has ended'
has "$("$weft" budget team)" '^pages +3 ' 'a last line needs no newline'
is "$(state "$id")" succeeded 'the execution has succeeded'
has "$("$weft" budget team --ledger)" "^$id +tokens +0 +900 +" 'the ledger has its usage'
is "$(cat work.err)" '' 'nothing is said on stderr'

run "$weft" budget team --reset
submit -k short --budget team --max-attempts 1 1 >/dev/null
exits 0 'work with a command that ends at once' "$weft" work --kind short --drain -- \
    sh -c 'echo "tokens 1k" >"$WEFT_USAGE_FILE"; exit 3'
is "$(used team)" 1000 'a failed attempt is reported too'

# ---- Lines that are none ----

cat >bad.sh <<'END'
printf '%s\n' 'tokens many' '' 'tokens' '12' 'tokens 1 2' 'tokens -5' 'to/kens 5' 'tokens 40' \
    'pages 1.5' >"$WEFT_USAGE_FILE"
END
run "$weft" budget team --reset
for i in 1 2; do submit -k bad --budget team 1 >/dev/null; done
exits 0 'work with bad lines' "$weft" work --kind bad --drain -- sh "$scratch/bad.sh"
is "$(grep -c '^done ' <<<"$out")" 2 'a bad line fails nothing'
is "$(grep -c WEFT_USAGE_FILE <<<"$err")" 1 'the first one is warned of'
has "$err" "it must be NAME NUMBER: 'tokens many'" 'the warning says how a line is written'
is "$(used team)" 80 'the good lines are reported'

run "$weft" budget team --reset
submit -k large --budget team 1 >/dev/null
exits 0 'work with a large file' "$weft" work --kind large --drain -- sh -c '
    seq 1 7000 | sed "s/^/tokens /" >"$WEFT_USAGE_FILE"'
is "$(used team)" 7000 'its end is read'
is "$err" '' 'a line that is cut by that is not warned of'

for i in 1 2 3; do submit -k odd --budget team 1 >/dev/null; done
exits 0 'work with files that are none' "$weft" work --kind odd --drain -- sh -c '
    ln -s /etc/passwd "$WEFT_USAGE_FILE" && rm "$WEFT_USAGE_FILE" && mkfifo "$WEFT_USAGE_FILE"'
is "$(grep -c '^done ' <<<"$out")" 3 'they hold nothing up'

# ---- Refused ----

run "$weft" budget small --hard tokens=1000
id=$(submit -k greedy --budget small 1)
exits 0 'work with a command that spends too much' "$weft" work --kind greedy --drain -- sh -c '
    echo "tokens 800" >"$WEFT_USAGE_FILE"
    until "$weft" budget small | grep -q "^tokens *800"; do sleep 0.05; done
    echo "tokens 1300" >"$WEFT_USAGE_FILE"
    until "$weft" budget small | grep -q "^breaches *[1-9]"; do sleep 0.05; done
    echo "went on"'
is "$("$weft" show "$id" --result)" 'went on' 'the command goes on'
is "$(complaints)" 1 'the refusal is said once'
has "$err" "^${id: -8}: weft: usage not reported: budget 'small' has 200 of 'tokens' left" \
    'with the execution, and what is left'
is "$(used small)" 800 'what was refused is not recorded'

serve_hello
server=$server_pid
stop_server() {
    kill "$server" 2>/dev/null || true
    leave
}
trap stop_server EXIT
for how in store server; do
    if [[ $how == server ]]; then
        export WEFT_SERVER=$url
        unset WEFT_STORE
    fi
    run "$weft" budget strict --hard tokens=1000 --on-hard cancel
    run "$weft" budget strict --reset
    id=$(submit -k strict --budget strict 1)
    exits 0 "work over a $how with a budget that cancels" "$weft" work --kind strict --max 1 \
        -- sh -c 'echo "tokens 1000" >"$WEFT_USAGE_FILE"; exec tail -f /dev/null'
    has "$out" "^lost +$id .* cancelled$" 'the command is stopped'
    is "$(state "$id")" cancelled 'the execution is cancelled'
    is "$(used strict)" 1000 'what it spent is recorded'
    is "$(complaints)" 0 'a lease that is gone is not complained of'
done

# ---- Through a server; again under one lease ----

run "$weft" budget team --reset
submit -k far --budget team --count 20 >/dev/null
exits 0 'work over a server' "$weft" work --kind far --concurrency 4 --drain -- \
    sh -c 'echo "tokens 10" >"$WEFT_USAGE_FILE"'
is "$(used team)" 200 'the usage of all commands adds up'

cat >again.sh <<'END'
if [ -n "${WEFT_RESUMED:-}" ]; then
    echo "tokens 5" >"$WEFT_USAGE_FILE"
    exit 0
fi
echo "tokens 30" >"$WEFT_USAGE_FILE"
"$weft" signal "$("$weft" waitpoints --new a)" 1 >/dev/null || exit 1
echo '{"waitpoints":[{"name":"a"}]}' >"$WEFT_SUSPEND_FILE"
exit 79
END
run "$weft" budget team --reset
id=$(submit -k again --budget team 1)
exits 0 'work with a command that goes on at once' "$weft" work --kind again --drain -- \
    sh "$scratch/again.sh"
json "$("$weft" show "$id" --json)" 'v["epoch"] == 1 and v["state"] == "succeeded"' \
    'it ran twice under one lease'
is "$(used team)" 35 'what both runs have spent is used'

# ---- A server that is away ----

submit -k away --budget team 1 >/dev/null
run "$weft" budget team --reset
in_background --kind away --max 1 --lease 10m -- sh -c '
    touch "$0.begun"; while [ ! -e "$0.end" ]; do sleep 0.05; done
    echo "tokens 77" >"$WEFT_USAGE_FILE"' "$scratch/away"
until_true is_there away.begun || bad 'the command runs' "$(cat work.out work.err)"
kill "$server"
wait "$server" 2>/dev/null || true
touch away.end
until_true grep -q 'usage not reported yet' work.err || bad 'the worker notices' "$(cat work.err)"
"$weft" serve --store "$store" --listen "${url#http://}" >/dev/null 2>serve.log &
server=$!
away=$worker
if until_true bash -c "! kill -0 $away"; then
    ok 'the worker waits for the server to report what was spent'
else
    bad 'the worker waits for the server to report what was spent' "$(cat work.out work.err)"
fi
has "$(cat work.out)" '^done ' 'and then the result'
is "$(used team)" 77 'the server that came back has both'

plan
