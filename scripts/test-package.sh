#!/usr/bin/env bash
# The Debian packages as a person meets them, in a booted systemd of their own: installed, started, used, upgraded
# under load with the ledger kept, removed, purged.
#
# Why: what a package does is done by dpkg and systemd, and only they show it.
# Promise: root and debootstrap are needed; without them one line says so. Everything happens in a container without a
#      network, which is gone at the end.
#
# Takes the packages in .cache/package/out (`make deb`) and makes a second revision of them for the upgrade.

. "$(dirname "$0")/lib.sh"

is_root || { skip "the packages in a booted system" "root is needed"; exit 0; }
for tool in debootstrap systemd-nspawn nsenter; do
    have "$tool" || apt_install debootstrap systemd-container util-linux ||
        { skip "the packages in a booted system" "$tool is missing: install debootstrap and systemd-container"; exit 0; }
done

debian_tree bookworm systemd,systemd-sysv,libpam-systemd,dbus,curl,ca-certificates,procps
scripts/package.sh deb
REUSE=1 DEB_REVISION=2 scripts/package.sh deb

work=$(mktemp -d "$CACHE/booted.XXXXXX")
nspawn=
# shellcheck disable=SC2329
cleanup() {
    [ -z "$nspawn" ] || { kill -KILL "$nspawn" $(pgrep -P "$nspawn") 2>/dev/null || true; }
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
cp -a "$CACHE/bookworm" "$work/tree"
cp "$CACHE"/package/out/*.deb "$work/tree/srv/"

say "booting"
systemd-nspawn --quiet --directory "$work/tree" --machine "bursar-$$" --register=no --keep-unit --private-network \
    --console=pipe --boot >"$work/console" 2>&1 </dev/null &
nspawn=$!

# inside CMD…: in the booted system.  eventually SECONDS CMD…: until it succeeds.
inside() { nsenter --target "$leader" --all -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C "$@"; }
eventually() {
    local until=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $until ] || return 1
        sleep 0.2
    done
}
# must TEXT CMD…: a step that has to succeed; its output contains TEXT.
must() {
    local text=$1 output
    shift
    printf '+ %s\n' "$*"
    output=$(inside "$@" 2>&1) || { printf '%s\n' "$output"; die "failed: $*"; }
    printf '%s\n' "$output" | head -n 40
    [[ $output == *"$text"* ]] || die "no \"$text\" in what $* printed"
}
# must_not CMD…: a step that has to fail.
must_not() {
    printf '+ ! %s\n' "$*"
    ! inside "$@" >/dev/null 2>&1 || die "succeeded: $*"
}

booted() { leader=$(pgrep -P "$nspawn" | head -n 1) && [ -n "$leader" ] && inside systemctl is-system-running 2>/dev/null | grep -qE 'running|degraded'; }
eventually 60 booted || { cat "$work/console"; die "the container did not boot"; }
leader=$(pgrep -P "$nspawn" | head -n 1)
first=$(basename "$CACHE"/package/out/bursar_*-1_*.deb)
second=$(basename "$CACHE"/package/out/bursar_*-2_*.deb)
sandbox=$(basename "$CACHE"/package/out/bursar-sandbox_*-1_*.deb)

say "install: it starts nothing and asks nothing"
must "Setting up bursar" dpkg -i "/srv/$first" "/srv/$sandbox"
must_not systemctl is-active bursar.service
must_not systemctl is-active bursar.socket
must_not systemctl is-active bursar-admin.socket
must "bursar 0" bursar --version
must "bursar-apps" getent group bursar-apps
must "bursar-read" getent group bursar-read
must "" test -s /usr/share/man/man1/bursar-sandbox.1.gz -a -s /usr/share/man/man1/bursar-spend.1.gz
must "" systemctl start bursar.service
must_not systemctl is-active bursar.service
must "/etc/bursar/api-key" sh -c 'systemctl status --no-pager bursar.service || true'

say "the service of the package bursar-sandbox is the far end"
must "" systemd-run --unit sandbox --property=DynamicUser=yes bursar sandbox
eventually 20 inside curl -sf http://127.0.0.1:8329/sandbox/clock || die "the sandbox did not start"

say "a user's own service, before there is the system's"
must "" useradd --create-home --home-dir /srv/laptop laptop
must "" loginctl enable-linger laptop
uid=$(inside id -u laptop)
own=(runuser -u laptop -- env HOME=/srv/laptop "XDG_RUNTIME_DIR=/run/user/$uid")
eventually 20 inside test -S "/run/user/$uid/systemd/private" || die "the user's systemd did not start"
inside tee /srv/users-config >/dev/null <<'CONFIG'
[upstream]
base_url = "http://127.0.0.1:8329"
api_key_file = "api-key"
CONFIG
must "" "${own[@]}" install -D -m 644 /srv/users-config /srv/laptop/.config/bursar/config.toml
must "" "${own[@]}" systemctl --user start bursar.service
must_not "${own[@]}" systemctl --user is-active bursar.service
must "/srv/laptop/.config/bursar/api-key" sh -c "${own[*]} systemctl --user status --no-pager bursar.service || true"
must "systemctl --user enable --now bursar.socket bursar" sh -c "printf sandbox-key | ${own[*]} bursar key set"
must "" "${own[@]}" systemctl --user enable --now bursar.socket bursar
must "active" "${own[@]}" systemctl --user is-active bursar.service
inside sh -c 'curl -sS -o /dev/null -w "%{http_code}" --max-time 30 http://127.0.0.1:8327/v1/chat/completions \
    -H "Content-Type: application/json" -d "{\"model\":\"auto\",\"messages\":[{\"role\":\"user\",\"content\":\"What is 2 + 3?\"}]}"' |
    grep -qx 200 || die "the user's own service did not answer"
must '"requests":1' "${own[@]}" bursar spend --json
must "" test -d /srv/laptop/.local/state/bursar/journal
# What the unit forbids is nothing that bursar needs.
must "listening" journalctl --no-pager "_UID=$uid"
must_not sh -c "journalctl --no-pager _UID=$uid | grep -E 'could not|Operation not permitted'"
must "" "${own[@]}" systemctl --user reload bursar.service
must "" sh -c 'echo "nonsense = 1" >>/srv/laptop/.config/bursar/config.toml'
must_not "${own[@]}" systemctl --user reload bursar.service
must "" "${own[@]}" systemctl --user disable --now bursar.socket bursar
must "" loginctl disable-linger laptop

say "start: the system's service"
must "" sed -i 's|^#* *base_url = .*|base_url = "http://127.0.0.1:8329"|' /etc/bursar/config.toml
must "systemctl enable --now" sh -c 'printf sandbox-key | bursar key set'
must "# the key is from /etc/bursar/api-key" bursar check
must "" systemctl enable --now bursar.socket bursar-admin.socket bursar.service
must "active" systemctl is-active bursar.service

say "use: an app, a request, its receipt"
must "" sh -c 'bursar app add nightly >/srv/token && test -s /srv/token'
inside tee /srv/ask >/dev/null <<'ASK'
#!/bin/sh
exec curl -sS -o /dev/null -w '%{http_code}\n' --max-time 30 http://127.0.0.1:8327/v1/chat/completions \
    -H "Authorization: Bearer $(cat /srv/token)" -H 'Content-Type: application/json' \
    -d '{"model":"auto","messages":[{"role":"user","content":"What is 2 + 3?"}]}'
ASK
must "200" sh /srv/ask
must "nightly" bursar spend --by app
must "nightly" bursar top --once
# The daemon's own line of each check; no check fails for a service that was installed by its package.
must "pass  unit" bursar doctor
must "" test -s /usr/share/bursar/grafana/bursar.json -a -s /usr/share/bursar/grafana/alerts.yml

say "a fleet's URL reaches the service as a credential (its database is away)"
must "" cp /etc/bursar/config.toml /srv/config.toml
must "" install -m 600 /dev/null /etc/bursar/fleet-url
inside tee /etc/bursar/fleet-url >/dev/null <<<'postgresql://node:secret@127.0.0.1:9/fleet'
must "" mkdir -p /etc/systemd/system/bursar.service.d
# As `bursar fleet join` writes them; tests/it/fleet/system.rs holds that it does.
inside tee /etc/systemd/system/bursar.service.d/fleet.conf >/dev/null <<'UNIT'
[Service]
LoadCredential=fleet-url:/etc/bursar/fleet-url
UNIT
must "" sed -i 's|^\[fleet\]$|&\nurl_file = "/run/credentials/bursar.service/fleet-url"|' /etc/bursar/config.toml
must "" systemctl daemon-reload
must "" systemctl restart bursar.service
eventually 20 inside sh -c 'bursar status --json | grep -q "database cannot be reached"' ||
    { inside bursar status; die "the service did not read the fleet's URL"; }
must "" rm -r /etc/systemd/system/bursar.service.d /etc/bursar/fleet-url
must "" cp /srv/config.toml /etc/bursar/config.toml
must "" systemctl daemon-reload
must "" systemctl restart bursar.service

say "what only reads leaves a stopped service stopped, also where its sockets are open"
must "" systemctl stop bursar.service
must "listening" systemctl show --property=SubState bursar-admin.socket
must "bursar: not running" bursar line
must "no daemon answers" sh -c 'bursar status 2>&1 || true'
must "installed and not started" sh -c 'bursar doctor || true'
must "nightly" bursar spend --by app
must "/var/lib/bursar" bursar app list
must_not systemctl is-active bursar.service
# An order starts it.
must "all apps are frozen" bursar freeze
must "active" systemctl is-active bursar.service
must "" bursar thaw
must "" systemctl stop bursar.socket bursar-admin.socket bursar.service
must "systemctl start bursar" sh -c 'bursar freeze 2>&1 || true'
must_not systemctl is-active bursar.service
must "" systemctl start bursar.socket bursar-admin.socket bursar.service

say "an upgrade refuses nobody, and the ledger is kept"
nsenter --target "$leader" --all -- env -i PATH=/usr/bin:/bin sh -c \
    'while [ ! -e /srv/stop ]; do sh /srv/ask; done' >"$work/answers" 2>&1 &
load=$!
must "Setting up bursar" dpkg -i "/srv/$second"
must "active" systemctl is-active bursar.service
# A limit on starts would end this at the sixth.
for _ in 1 2 3 4 5 6; do must "" systemctl restart bursar.service; done
inside touch /srv/stop
wait "$load" || true
sort "$work/answers" | uniq -c
[ "$(sort -u "$work/answers")" = 200 ] || die "not every answer was 200 during the upgrade"
asked=$(($(wc -l <"$work/answers") + 1))
must "\"requests\":" bursar spend --json
inside bursar ledger verify || die "the ledger is not whole"
counted=$(inside bursar spend --json | grep -o '"requests":[0-9]*' | head -n 1)
[ "$counted" = "\"requests\":$asked" ] || die "$asked requests were answered, and the ledger has $counted"
say "$asked requests, all of them in the ledger"

say "the key can be encrypted on the disk"
must "" systemd-creds encrypt --name=api-key /etc/bursar/api-key /etc/bursar/api-key.cred
must "" mv /etc/bursar/api-key /srv/api-key
for unit in bursar.service bursar.socket bursar-admin.socket; do
    must "" mkdir -p "/etc/systemd/system/$unit.d"
    printf '[Unit]\nConditionPathExists=\nConditionPathExists=/etc/bursar/api-key.cred\n' |
        inside tee "/etc/systemd/system/$unit.d/key.conf" >/dev/null
done
printf '[Service]\nLoadCredential=\nLoadCredentialEncrypted=api-key:/etc/bursar/api-key.cred\n' |
    inside tee -a /etc/systemd/system/bursar.service.d/key.conf >/dev/null
must "" systemctl daemon-reload
must "" systemctl stop bursar.socket bursar-admin.socket bursar.service
must "" systemctl start bursar.socket bursar-admin.socket bursar.service
must "active" systemctl is-active bursar.service
must "" systemctl reload bursar.service
must "pass  key" bursar doctor
must "" cp /etc/bursar/api-key.cred /srv/first.cred
must "the key is in /etc/bursar/api-key.cred" sh -c 'bursar key set </srv/api-key'
must_not cmp -s /etc/bursar/api-key.cred /srv/first.cred
must_not test -e /etc/bursar/api-key
must_not sh -c 'grep -qf /srv/api-key /etc/bursar/api-key.cred'
must "" systemctl restart bursar.service
must "pass  key" bursar doctor
must "" sh -c 'rm -r /etc/systemd/system/bursar*.d /etc/bursar/api-key.cred'
must "" mv /srv/api-key /etc/bursar/api-key
must "" systemctl daemon-reload
must "" systemctl stop bursar.socket bursar-admin.socket bursar.service
must "" systemctl start bursar.socket bursar-admin.socket bursar.service

say "a reload with a bad file fails, and says why"
must "" sh -c 'cp /etc/bursar/config.toml /srv/config.toml && echo "nonsense = 1" >>/etc/bursar/config.toml'
must_not systemctl reload bursar.service
must "nonsense" sh -c 'journalctl --no-pager -u bursar.service | tail -n 20'
# Lines have their priority: the refusal is among the warnings, and the answers are not.
must "nonsense" journalctl --no-pager -p warning -u bursar.service
must_not sh -c 'journalctl --no-pager -p warning -u bursar.service | grep status=200'
must "status=200" sh -c 'journalctl --no-pager -u bursar.service | grep status=200 | tail -n 1'
must "" cp /srv/config.toml /etc/bursar/config.toml
must "" systemctl reload bursar.service

say "remove keeps everything, purge keeps the ledger"
must "Removing bursar" dpkg --remove bursar-sandbox bursar
must_not systemctl is-active bursar.service
must_not systemctl is-active bursar.socket
must "" test -e /etc/bursar/api-key -a -e /etc/bursar/config.toml -a -d /var/lib/private/bursar/journal
must "" sh -c 'for secret in api-key.cred fleet-url; do install -m 600 /etc/bursar/api-key "/etc/bursar/$secret"; done'
must "" install -D /dev/null /etc/systemd/system/bursar.service.d/fleet.conf
must "/var/lib/private/bursar" dpkg --purge bursar
must_not test -e /etc/bursar
must_not test -e /etc/systemd/system/bursar.service.d
must "" test -d /var/lib/private/bursar/journal
say "the packages do what they promise"
