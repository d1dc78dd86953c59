#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/setup on a machine where every package is missing: stand-ins for dpkg-query, apt-get and the
# other programs that would change the machine note how they are called. And the libraries that
# meson asks for are among the packages that setup installs.

root=$(cd "$(dirname "$0")/../.." && pwd)
source "$(dirname "$0")/common.bash"

mkdir -p bin machine/usr/sbin machine/etc/postgresql-common calls
printf '# as installed\n' >machine/etc/postgresql-common/createcluster.conf
export WEFT_SETUP_ROOT=$scratch/machine CALLS=$scratch/calls

stand_in() { # NAME, its body on stdin
    { echo '#!/bin/bash' && cat; } >"bin/$1"
    chmod 755 "bin/$1"
}
stand_in dpkg-query <<<'exit 1'
stand_in sudo <<<'exec "$@"'
stand_in apt-get <<'END'
echo "$*" >>"$CALLS/apt"
flock -n /var/lib/dpkg true && echo 'without the lock' >>"$CALLS/apt"
if [[ " $* " == *' install '* ]]; then
    words=$*
    tr ' ' '\n' <<<"${words##* install }" >>"$CALLS/asked"
    [[ -x $WEFT_SETUP_ROOT/usr/sbin/policy-rc.d ]] && ! "$WEFT_SETUP_ROOT/usr/sbin/policy-rc.d" ||
        echo 'services may start' >>"$CALLS/apt"
    [[ $* != *' postgresql-15'* ]] ||
        cp "$WEFT_SETUP_ROOT/etc/postgresql-common/createcluster.conf" "$CALLS/cluster"
    echo 'pmstatus:gcc:40.5:Installing gcc' >&3
fi
echo 'E: what apt-get says'
exit "$(cat "$CALLS/status")"
END
for name in deb-systemd-helper update-rc.d apt-mark; do
    stand_in "$name" <<<"echo \"$name \$*\" >>\"\$CALLS/services\""
done
setup() { # GROUP...: with nothing noted before
    rm -f calls/*
    echo "${apt_status:-0}" >calls/status
    run env PATH="$scratch/bin:$PATH" "$root/tools/setup" "$@"
}
# What apt-get was asked for, but for what comes as a part of PostgreSQL's server anyway.
asked() { sed '/^postgresql-common$/d' calls/asked | sort -u | xargs; }
# The packages of a group as the script's text names them, whatever the script makes of it.
named() {
    python3 - "$root/tools/setup" "$@" <<'END'
import re, sys
text = open(sys.argv[1], encoding="utf-8").read()
words = set()
for group in sys.argv[2:]:
    words |= set(re.search(r'^ *\[%s\]="([^"]*)"' % group, text, re.M).group(1).split())
print(*sorted(words))
END
}

# ---- Everything that is named is asked for -------------------------------------------------------

for group in build test check bench fresh; do
    setup "$group"
    is "$status" 0 "$group: setup succeeds"
    is "$(asked)" "$(named "$group")" "$group: every package is asked for"
    lacks "$(cat calls/apt)" 'without the lock' "$group: only one setup installs at a time"
done
setup build test
is "$(asked)" "$(named build test)" 'setup of two groups installs the packages of both'
has "$out" '^setup: installing gcc libc6-dev ' 'setup says what it installs'
has "$err" '^setup: 40 % Installing gcc' 'setup says how far it is'
setup nonsense
is "$status" 2 'setup of an unknown group is refused'

# ---- Services are neither started nor enabled ----------------------------------------------------

setup test
lacks "$(cat calls/apt)" 'services may start' 'no service may start while packages are installed'
has "$(cat calls/cluster)" '^create_main_cluster = false' 'PostgreSQL makes no cluster at first'
is "$(cat machine/etc/postgresql-common/createcluster.conf)" '# as installed' \
    'the setting for PostgreSQL is removed afterwards'
if [[ -e machine/usr/sbin/policy-rc.d ]]; then
    bad 'services of other packages may start afterwards'
else
    ok 'services of other packages may start afterwards'
fi
for service in postgresql pgbouncer nginx; do
    has "$(cat calls/services)" "^deb-systemd-helper disable $service.service" "$service: no unit"
    has "$(cat calls/services)" "^update-rc.d $service disable" "$service: no script at boot"
done
printf '#!/bin/sh\nexit 101\n' >machine/usr/sbin/policy-rc.d
chmod 755 machine/usr/sbin/policy-rc.d
setup test
has "$(cat machine/usr/sbin/policy-rc.d)" 'exit 101' 'a policy of the machine stays in place'
rm machine/usr/sbin/policy-rc.d
there='installed:postgresql-common installed:pgbouncer installed:nginx-common'
stand_in dpkg-query <<<"printf '%s ' $there"
setup test
lacks "$(cat calls/services 2>/dev/null)" 'disable' 'services that were there before are left alone'
stand_in dpkg-query <<<'exit 1'

# ---- When it cannot ------------------------------------------------------------------------------

apt_status=100
setup build
apt_status=0
is "$status" 1 'setup fails when apt-get fails'
has "$err" '^setup: apt-get could not install gcc ' 'setup names the packages when apt-get fails'
has "$err" 'E: what apt-get says' 'setup shows what apt-get printed'
has "$(cat calls/apt)" ' update$' 'setup fetches the lists before it gives up'

mkdir bare
for name in bash env awk sed apt-get dpkg-query; do
    ln -s "$(PATH="$scratch/bin:$PATH" command -v "$name")" "bare/$name"
done
printf '#!/bin/bash\necho 1000\n' >bare/id
chmod 755 bare/id
rm -f calls/*
exits 1 'setup without root and sudo' env PATH="$scratch/bare" "$root/tools/setup" build
line=$(grep '^    apt-get install ' <<<"$err")
is "$(tr ' ' '\n' <<<"${line##*recommends }" | sort | xargs)" "$(named build test)" \
    'prints the command to paste, for building and testing at once'
if [[ -e calls/apt ]]; then
    bad 'setup without root and sudo installs nothing'
else
    ok 'setup without root and sudo installs nothing'
fi

# ---- What meson asks for -------------------------------------------------------------------------

packages=" $("$root/tools/setup" --list build | xargs) "
count=0
while read -r library; do
    count=$((count + 1))
    folder=$(pkg-config --variable=pcfiledir "$library")
    owner=$(dpkg-query -S "$folder/$library.pc" 2>/dev/null | sed 's/[:,].*//')
    has "$packages" " ${owner:-unknown} " "$library is of ${owner:-unknown}, which setup installs"
done < <(sed -n "s/.*\bdependency('\([^']*\)'.*/\1/p" "$root"/meson.build "$root"/*/meson.build \
    "$root"/src/*/meson.build | sort -u | grep -vx threads)
if ((count >= 5)); then ok "$count libraries"; else bad "only $count libraries were found"; fi
plan
