#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Settings: a flag beats the environment, which beats the file, which beats the default; each says
# where it came from; what is wrong is an error that names the place.

source "$(dirname "$0")/common.bash"

# value NAME: value and origin of a setting in the JSON of the last run.
value() {
    python3 -c '
import json, sys
for item in json.loads(sys.argv[1])["items"]:
    if item["name"] == sys.argv[2]:
        print(item["value"], item["from"])' "$out" "$1"
}

exits 0 'config without settings' "$weft" config --json
is "$(value threads)" '6 default' 'a setting has its default'
is "$(value store)" 'sqlite:weft.db default' 'the store has its default'
is "$(value listen)" '127.0.0.1:7717 default' 'the address is loopback'

cat >weft.conf <<'END'
# a comment
threads = 3
store=sqlite:file.db   # with a comment
  grace =  20s
body_bytes = 64MiB

tokens = yes
END
exits 0 'config with ./weft.conf' "$weft" config --json
is "$(value threads)" '3 weft.conf:2' 'the file beats the default'
is "$(value store)" 'sqlite:file.db weft.conf:3' 'a comment after a value is not part of it'
is "$(value grace)" '20s weft.conf:4' 'white space around a value is dropped'
is "$(value tokens)" 'yes weft.conf:7' 'a switch is read from the file'

exits 0 'config with the environment' env WEFT_THREADS=4 WEFT_TOKENS=no "$weft" config --json
is "$(value threads)" '4 environment' 'a variable beats the file'
is "$(value tokens)" 'no environment' 'a variable switches off what the file switches on'
exits 0 'config with flags' env WEFT_THREADS=4 WEFT_TOKENS=no "$weft" config --json --threads 5 \
    --tokens
is "$(value threads)" '5 flag' 'a flag beats the variable'
is "$(value tokens)" 'yes flag' 'a switch beats the variable'
exits 0 'config with a switch that has the value no' "$weft" config --json --tokens=no
is "$(value tokens)" 'no flag' 'the switch is off'
exits 0 'config with an empty variable' env WEFT_THREADS= "$weft" config --json
is "$(value threads)" '3 weft.conf:2' 'the variable counts as not set'

echo 'threads = 7' >other.conf
exits 0 'config --config' "$weft" config --json --config other.conf
is "$(value threads)" '7 other.conf:1' 'the named file is read'
is "$(value grace)" '10s default' './weft.conf is not read'
exits 0 'config with WEFT_CONFIG' env WEFT_CONFIG=other.conf "$weft" config --json
is "$(value threads)" '7 other.conf:1' 'the named file is read'
exits 2 'config with a file that does not exist' "$weft" config --config nowhere.conf
has "$err" 'nowhere.conf' 'the error names the file'

exits 0 'config with every flag of the table' "$weft" config --json --store sqlite:x --listen \
    127.0.0.1:0 \
    --listen-url postgres://a/b --tls-cert c --tls-key k --signing-key-file s --secrets-dir d \
    --ca-file c --tokens \
    --no-migrate --threads 1 \
    --cors-origin https://a.example --host a.example \
    --connections 2 --per-address 1 --queue-max 3 --namespace-queues 9 \
    --namespace-workers 9 --unused-names-after 60d --body-bytes 2M \
    --answer-bytes 2M --send-min 1K --file-bytes 2M --file-requests 10 \
    --idle-timeout 1m --receive-timeout 2 \
    --send-timeout 3s --grace 1h --scanners intake --scan '*:interval=5s' --access-log \
    --purge-batch 10 --purge-pause 20ms \
    --executor off --http-in-flight 9 --http-urls public \
    --log-level debug --log-format json --store-wait 5s --migrate-wait 1m
json "$out" 'all(item["from"] == "flag" for item in v["items"])' 'the value of every flag is shown'

wrong() {
    local name=$1 want=$2
    shift 2
    exits 2 "$name" "$@"
    has "$err" "$want" "$name: the error names flag and value"
    exits 2 "$name: serve refuses the value as well" "$1" serve "${@:3}"
}
wrong 'a number that is none' '^weft: --threads is .x.: it must be a whole number' \
    "$weft" config --threads x
wrong 'a number out of range' 'within 1 and 256' "$weft" config --threads 300
wrong 'an invalid duration' '^weft: --grace is .soon.: it must be a duration' \
    "$weft" config --grace soon
wrong 'an empty store' "^weft: --store is '': it must not be empty" "$weft" config --store ''
wrong 'an empty address' "^weft: --listen is '': it must not be empty" "$weft" config --listen ''
wrong 'half a second' 'whole seconds' "$weft" config --grace 500ms
wrong 'a pause that is none' 'it must be a duration, like 100ms' "$weft" config --purge-pause soon
wrong 'a batch of nothing' 'within 1 and 10000' "$weft" config --purge-batch 0
wrong 'an invalid size' 'it must be a size' "$weft" config --body-bytes lots
wrong 'an invalid switch' 'yes or no' "$weft" config --tokens=perhaps
wrong 'an unknown word' 'log-level is .loud.' "$weft" config --log-level loud
has "$err" 'it must be one of: silent error warn info debug' \
    'an invalid log level: the error lists the words'
has "$("$weft" serve --help | tr -s ' \n' ' ')" 'silent, error, warn, info or debug' \
    'the help of serve lists the log levels'
has "$("$weft" serve --help | tr -s ' \n' ' ')" 'logfmt or json' \
    'the help of serve lists the log formats'
wrong 'a scanner that is none' '^weft: --scanners is .x,intake.: there is no scanner .x.; ' \
    "$weft" config --scanners x,intake
wrong 'a rule that is none' "^weft: --scan is .*: there is no key 'speed'" \
    "$weft" config --scan '*:speed=9'
wrong 'an origin with a path' '^weft: --cors-origin is .https://a.example/x.: .*nothing else' \
    "$weft" config --cors-origin https://a.example/x
wrong 'a host with a port' '^weft: --host is .a.example:80.: .*without a port' \
    "$weft" config --host a.example:80
wrong 'a certificate without a key' 'belong together' "$weft" config --tls-cert x
exits 2 'config with an invalid variable' env WEFT_THREADS=x "$weft" config
has "$err" '^weft: WEFT_THREADS is .x.' 'the error names the variable'

file_error() {
    printf '%b' "$2" >bad.conf
    exits 2 "$1" "$weft" config --config bad.conf
    has "$err" "$3" "$1: the error names file and line"
}
file_error 'an unknown name' 'threads = 1\nthread = 2\n' \
    '^weft: bad.conf:2: there is no setting .thread.; did you mean .threads.'
file_error 'a line without =' '\n\nthreads 4\n' '^weft: bad.conf:3: a line must be'
file_error 'a bad value' '# x\nthreads = many\n' '^weft: bad.conf:2: threads is .many.'
printf 'threads = 1\0\n' >bad.conf
exits 2 'config with a file that is no text' "$weft" config --config bad.conf

exits 0 'config with a repeated flag of a list' "$weft" config --json --cors-origin \
    https://a.example \
    --cors-origin=https://b.example,http://c.example:8080
is "$(value cors_origin)" 'https://a.example,https://b.example,http://c.example:8080 flag' \
    'the values are joined'
exits 2 'serve with every origin allowed and no tokens' "$weft" serve --listen 127.0.0.1:0 --store \
    sqlite:cors.db \
    --tokens=no --cors-origin '*'
has "$err" "'\*' would let every page of the web in" 'the origin * is refused'
has "$err" '--tokens' 'the error names --tokens'
is "$(ls cors.db 2>/dev/null)" '' 'serve that is refused creates no store'

exits 0 'config with a password in a URL' "$weft" config --store 'postgres://u:se:cr@t@db/w' --json
lacks "$out" 'se:cr' 'the password is not shown'
has "$out" 'postgres://u:\*\*\*@db/w' 'the rest of the URL is shown'
exits 0 'config with a password in a parameter' "$weft" config --store \
    'postgres://db/w?password=hidden&a=b'
lacks "$out" 'hidden' 'the password is not shown'
has "$out" 'password=\*\*\*&a=b' 'the parameters after it are shown'

exits 0 'config' "$weft" config
has "$out" '^NAME +VALUE +FROM +MEANING' 'the table has titles'
exits 0 'config on a narrow terminal' env COLUMNS=50 "$weft" config
if [[ $(wc -L <<<"$out") -le 50 ]]; then
    ok 'config on a narrow terminal: no line is wider than it'
else
    bad 'config on a narrow terminal: no line is wider than it' "$out"
fi

# Whatever is said of a URL, its password is not.
for url in postgres://u:hunter2@127.0.0.1:1/d postgres://u:hun/ter2@127.0.0.1:1/d \
    'postgres://127.0.0.1:1/d?user=u&p%61ssword=hunter2' 'host=127.0.0.1 password=hunter2' \
    http://u:hunter2@127.0.0.1:1 'sqlite:/nowhere/x.db?password=hunter2'; do
    for command in 'config --store' 'migrate --check --store' 'serve --store-wait 0 --store' \
        'ls --store' 'ls --server' 'bench --server' 'doctor --store'; do
        # The command is several words.
        # shellcheck disable=SC2086
        said=$("$weft" $command "$url" 2>&1 </dev/null || true)
        lacks "$said" 'ter2' "weft $command: ${url%%:*}"
    done
done
plan
