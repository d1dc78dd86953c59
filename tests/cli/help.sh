#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Help, manual pages and completion come from the tables: every command has all of them, and they
# agree with each other. What is typed wrong gets a suggestion and exit code 2.

source "$(dirname "$0")/common.bash"

commands=$("$weft" | sed -n '/^commands:/,/^$/p' | awk '/^  [a-z]/ { print $1 }')
exits 0 'weft without arguments' "$weft"
has "$out" '^usage: weft COMMAND' 'prints the usage'
is "$("$weft" help)" "$out" 'weft help prints the same as weft'
is "$("$weft" --help)" "$out" 'weft --help prints the same as weft'
for command in serve submit ls show cancel replay lanes workers replicas scanners counts migrate \
    token config version completion help; do
    if grep -qx "$command" <<<"$commands"; then ok "$command is listed"; else bad "$command"; fi
done

for command in $commands; do
    exits 0 "help $command" "$weft" help "$command"
    first=$out
    has "$first" "^usage: weft $command" "help $command shows its usage"
    exits 0 "$command --help" "$weft" "$command" --help
    is "$out" "$first" "$command --help prints the same as help $command"
    wide=$(COLUMNS=60 "$weft" help "$command" | sed '/^examples:/,$d' | awk 'length > 60' |
        grep -c ' .* ' || true)
    is "$wide" 0 "help $command is not wider than a narrow terminal"
done

# ---- Manual pages ----

check_page() {
    local page=$1 name=$2 heading
    for heading in NAME SYNOPSIS DESCRIPTION OPTIONS EXAMPLES 'EXIT STATUS' ENVIRONMENT; do
        grep -qx -e ".SH $heading" "$page" || { bad "$name has no $heading"; return; }
    done
    ok "$name has its sections"
    if command -v groff >/dev/null; then
        is "$(groff -man -Tutf8 -ww -z "$page" 2>&1)" '' "groff accepts $name"
    elif command -v mandoc >/dev/null; then
        is "$(mandoc -Tlint -Wwarning "$page" 2>&1)" '' "mandoc accepts $name"
    fi
}
"$weft" help --man >weft.1
check_page weft.1 'weft(1)'
has "$(cat weft.1)" '^130$' 'weft(1) lists the exit codes'
for command in $commands; do
    "$weft" help --man "$command" >"weft-$command.1"
    check_page "weft-$command.1" "weft-$command(1)"
    if cmp -s "weft-$command.1" "$WEFT_BUILD/src/cmd/weft-$command.1"; then
        ok "the build wrote weft-$command(1)"
    else
        bad "the build wrote weft-$command(1)"
    fi
    has "$(cat weft.1)" "weft.-$command \(1\)" "weft(1) points to weft-$command(1)"
done

# ---- Completion ----

"$weft" completion bash >weft.bash
if bash -n weft.bash; then
    ok 'weft completion prints a script of bash'
else
    bad 'weft completion prints a script of bash'
fi
source "$scratch/weft.bash"
complete_words() {
    COMP_WORDS=("$@")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _weft
    echo "${COMPREPLY[*]}"
}
is "$(complete_words weft su)" submit 'completion of a command'
is "$(complete_words weft '' | tr ' ' '\n' | sort)" "$(sort <<<"$commands")" \
    'completion of nothing offers all commands'
is "$(complete_words weft ls --st)" '--state --store' 'completion of options'
is "$(complete_words weft ls --state su)" 'suspended succeeded' \
    'completion of the words of an option'
is "$(complete_words weft ls -s fai)" failed 'completion of the words after the letter of an option'
is "$(complete_words weft ls --state = fai)" failed 'completion of the words after ='
is "$(complete_words weft --json ls --color a)" 'auto always' \
    'completion of options with an option before the command'
is "$(complete_words weft token re)" revoke 'completion of the words of an argument'
is "$(complete_words weft help su)" submit 'completion of commands for help'
touch jobs.jsonl
is "$(complete_words weft submit --bulk jo)" jobs.jsonl 'completion of files'
is "$(complete_words weft flow r)" 'run rm' 'completion of the verbs of flow'
is "$(complete_words weft flow --json s)" show \
    'completion of the verbs of flow with an option before them'
is "$(complete_words weft flow run jo)" jobs.jsonl 'completion of the file of a verb'
is "$(complete_words weft submit --kind jo)" '' 'completion of an unknown value offers nothing'
exits 2 'completion of another shell' "$weft" completion fish

# ---- What is installed ----

if DESTDIR=$scratch/tree meson install -C "$WEFT_BUILD" --no-rebuild --quiet >install.log 2>&1; then
    installed=$(find tree -type f)
    has "$installed" '/bin/weft$' 'make install installs the command'
    has "$installed" '/man/man1/weft-submit.1' 'make install installs the manual'
    has "$installed" '/bash-completion/completions/weft$' 'make install installs the completion'
else
    bad 'it can be installed' "$(cat install.log)"
fi

# ---- What is typed wrong ----

exits 2 'a mistyped command' "$weft" sumbit
has "$err" "did you mean 'submit'" 'the error suggests the nearest command'
is "$out" '' 'nothing on stdout'
exits 2 'a mistyped option' "$weft" ls --stat failed
has "$err" 'did you mean --state' 'the error suggests the nearest option'
has "$err" '^hint: see `weft help ls`' 'there is a hint'
exits 2 'an option that is near to none' "$weft" ls --qqqqqqqq
lacks "$err" 'did you mean' 'the error suggests nothing'
exits 2 'an option without its value' "$weft" ls --state
exits 2 'a value for a switch' "$weft" ls --all=yes
exits 2 'an unknown letter' "$weft" ls -Z
exits 2 'too many arguments' "$weft" show a b
exits 2 'too few arguments' "$weft" show
exits 2 'an argument for a command that takes none' "$weft" counts extra
exits 2 'an option of another command before the command' "$weft" --server http://x version
exits 2 'an unknown word for --color' "$weft" version --color pink
exits 3 'help for an unknown command' "$weft" help nonsense
exits 2 '--server and --store together' "$weft" ls --server http://127.0.0.1:1 --store "$store"
exits 2 '--server that is no URL' "$weft" ls --server 127.0.0.1:1

exits 0 'weft version' "$weft" version
has "$out" '^weft [0-9]+\.[0-9]+\.[0-9]+$' 'prints the version'
is "$("$weft" --version)" "$out" 'weft --version prints the same'
json "$("$weft" version --json)" '"version" in v and v["schema"] >= 1' \
    'version --json has version and schema'
status=0
"$weft" version >/dev/full 2>"$scratch/full" || status=$?
is "$status" 1 'writing to a full disk is a failure'
plan
