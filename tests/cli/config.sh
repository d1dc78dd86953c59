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

exits 0 'without anything' "$weft" config --json
is "$(value threads)" '6 default' 'the default holds'
is "$(value store)" 'sqlite:weft.db default' 'and there is a store'
is "$(value listen)" '127.0.0.1:7717 default' 'on loopback'

cat >weft.conf <<'END'
# a comment
threads = 3
store=sqlite:file.db   # with a comment
  grace =  20s
body_bytes = 64MiB

tokens = yes
END
exits 0 'with ./weft.conf' "$weft" config --json
is "$(value threads)" '3 weft.conf:2' 'the file beats the default'
is "$(value store)" 'sqlite:file.db weft.conf:3' 'a comment after a value is none of it'
is "$(value grace)" '20s weft.conf:4' 'white space does not matter'
is "$(value tokens)" 'yes weft.conf:7' 'a switch'

exits 0 'with the environment' env WEFT_THREADS=4 WEFT_TOKENS=no "$weft" config --json
is "$(value threads)" '4 environment' 'it beats the file'
is "$(value tokens)" 'no environment' 'also to switch something off'
exits 0 'with flags' env WEFT_THREADS=4 WEFT_TOKENS=no "$weft" config --json --threads 5 --tokens
is "$(value threads)" '5 flag' 'they beat the environment'
is "$(value tokens)" 'yes flag' 'and so does a switch'
exits 0 'a switch with a value' "$weft" config --json --tokens=no
is "$(value tokens)" 'no flag' 'can be switched off'
exits 0 'an empty variable' env WEFT_THREADS= "$weft" config --json
is "$(value threads)" '3 weft.conf:2' 'counts as none'

echo 'threads = 7' >other.conf
exits 0 '--config' "$weft" config --json --config other.conf
is "$(value threads)" '7 other.conf:1' 'names another file'
is "$(value grace)" '10s default' 'and the usual one is not read'
exits 0 'WEFT_CONFIG' env WEFT_CONFIG=other.conf "$weft" config --json
is "$(value threads)" '7 other.conf:1' 'does so too'
exits 2 'a file that is not there' "$weft" config --config nowhere.conf
has "$err" 'nowhere.conf' 'is named'

exits 0 'every flag of the table' "$weft" config --json --store sqlite:x --listen 127.0.0.1:0 \
    --listen-url postgres://a/b --tls-cert c --tls-key k --tokens --no-migrate --threads 1 \
    --cors-origin https://a.example --host a.example \
    --connections 2 --per-address 1 --queue-max 3 --namespace-queues 9 \
    --namespace-workers 9 --unused-names-after 60d --body-bytes 2M \
    --answer-bytes 2M --send-min 1K \
    --idle-timeout 1m --receive-timeout 2 \
    --send-timeout 3s --grace 1h --scanners intake --scan '*:interval=5s' --access-log \
    --log-level debug --log-format json --store-wait 5s --migrate-wait 1m
json "$out" 'all(item["from"] == "flag" for item in v["items"])' 'is taken'

wrong() {
    local name=$1 want=$2
    shift 2
    exits 2 "$name" "$@"
    has "$err" "$want" "$name says so"
    exits 2 "$name: serve refuses it too" "$1" serve "${@:3}"
}
wrong 'a number that is none' '^weft: --threads is .x.: it must be a whole number' \
    "$weft" config --threads x
wrong 'a number out of range' 'within 1 and 256' "$weft" config --threads 300
wrong 'a duration that is none' '^weft: --grace is .soon.: it must be a duration' \
    "$weft" config --grace soon
wrong 'half a second' 'whole seconds' "$weft" config --grace 500ms
wrong 'a size that is none' 'it must be a size' "$weft" config --body-bytes lots
wrong 'a switch that is none' 'yes or no' "$weft" config --tokens=perhaps
wrong 'a word that is none' 'log-level is .loud.' "$weft" config --log-level loud
has "$err" 'it must be one of: silent error warn info debug' 'the words are listed'
has "$("$weft" serve --help | tr -s ' \n' ' ')" 'silent, error, warn, info or debug' \
    'and so they are in the help'
has "$("$weft" serve --help | tr -s ' \n' ' ')" 'logfmt or json' 'those of the format as well'
wrong 'a scanner that is none' '^weft: --scanners is .x,intake.: there is no scanner .x.; ' \
    "$weft" config --scanners x,intake
wrong 'a rule that is none' "^weft: --scan is .*: there is no key 'speed'" \
    "$weft" config --scan '*:speed=9'
wrong 'an origin with a path' '^weft: --cors-origin is .https://a.example/x.: .*nothing else' \
    "$weft" config --cors-origin https://a.example/x
wrong 'a host with a port' '^weft: --host is .a.example:80.: .*without a port' \
    "$weft" config --host a.example:80
wrong 'a certificate without a key' 'belong together' "$weft" config --tls-cert x
exits 2 'a bad variable' env WEFT_THREADS=x "$weft" config
has "$err" '^weft: WEFT_THREADS is .x.' 'is named'

file_error() {
    printf '%b' "$2" >bad.conf
    exits 2 "$1" "$weft" config --config bad.conf
    has "$err" "$3" "$1: file and line are named"
}
file_error 'an unknown name' 'threads = 1\nthread = 2\n' \
    '^weft: bad.conf:2: there is no setting .thread.; did you mean .threads.'
file_error 'a line without =' '\n\nthreads 4\n' '^weft: bad.conf:3: a line must be'
file_error 'a bad value' '# x\nthreads = many\n' '^weft: bad.conf:2: threads is .many.'
printf 'threads = 1\0\n' >bad.conf
exits 2 'bytes that are no text' "$weft" config --config bad.conf

exits 0 'a list that is repeated' "$weft" config --json --cors-origin https://a.example \
    --cors-origin=https://b.example,http://c.example:8080
is "$(value cors_origin)" 'https://a.example,https://b.example,http://c.example:8080 flag' 'adds up'
exits 2 'every origin without tokens' "$weft" serve --listen 127.0.0.1:0 --store sqlite:cors.db \
    --tokens=no --cors-origin '*'
has "$err" "'\*' would let every page of the web in" 'is refused'
has "$err" '--tokens' 'with what to do'
is "$(ls cors.db 2>/dev/null)" '' 'before a store is made'

exits 0 'a password in a URL' "$weft" config --store 'postgres://u:se:cr@t@db/w' --json
lacks "$out" 'se:cr' 'is not shown'
has "$out" 'postgres://u:\*\*\*@db/w' 'but the rest is'
exits 0 'a password in a parameter' "$weft" config --store 'postgres://db/w?password=secret&a=b'
lacks "$out" 'secret' 'is not shown either'
has "$out" 'password=\*\*\*&a=b' 'but what follows is'

exits 0 'a table' "$weft" config
has "$out" '^NAME +VALUE +FROM +MEANING' 'has titles'
exits 0 'a narrow terminal' env COLUMNS=50 "$weft" config
if [[ $(wc -L <<<"$out") -le 50 ]]; then ok 'is not overrun'; else bad 'is not overrun' "$out"; fi

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
