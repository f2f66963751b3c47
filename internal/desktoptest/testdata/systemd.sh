# Runs inside a booted Debian, as root: the package's whole life, then the
# service without a package.
api=http://127.0.0.1:37271
check() { # name, command…
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then echo "PASS $name"; else echo "FAIL $name: $(echo "$out" | tail -5 | tr '\n' ' ')"; fi
}
refuse() { # name, words expected, command…
	local name=$1 words=$2 out
	shift 2
	if out=$("$@" 2>&1); then echo "FAIL $name: it was not refused"; return; fi
	case $out in *"$words"*) echo "PASS $name" ;; *) echo "FAIL $name: $out" ;; esac
}
healthy() { curl -fs -m 20 $api/healthz >/dev/null; }
soon() { local end=$((SECONDS + 60)); while [ $SECONDS -lt $end ]; do "$@" && return; sleep 0.05; done; return 1; }
version() { curl -fs $api/healthz | grep -o "\"version\":\"$1\""; }
pid() { systemctl show -p MainPID --value adit; }
leaves_nothing() {
	local left
	left=$(find / -xdev \( -path /proc -o -path /sys -o -path /var/log -o -path /tmp -o -path /var/lib/dpkg/info -o -path /var/lib/systemd/catalog \) -prune -o -iname '*adit*' -print)
	[ -z "$left" ] || { echo "left: $left"; return 1; }
}
leaves_no_service() {
	local left
	left=$(find /etc /run /usr/lib/systemd -xdev -iname '*adit*' -print)
	[ -z "$left" ] || { echo "left: $left"; return 1; }
	! systemctl cat adit.service
}
by_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups env -i PATH="$PATH" HOME=/nonexistent "$@"; }

check "installs" dpkg -i /first.deb
check "is enabled" systemctl is-enabled adit
check "is active" systemctl is-active adit
check "answers" soon healthy
check "has the package's version" version 0.1.0
check "an ordinary user may ask for the status" by_nobody adit service status
check "the status says a package owns it" grep -q '"owner": "package"' <(by_nobody adit service status --json)
refuse "a second installation is refused" "package has installed" adit service install
refuse "removing it by hand is refused" "package has installed" adit service uninstall
check "an ordinary user finds the daemon" by_nobody test -r /run/adit/runtime.json
status=/proc/$(pid)/status
check "runs without root" sh -c "! grep -q '^Uid:.0' $status"
check "has no capabilities" grep -q '^CapEff:.0000000000000000' $status
check "gains no privileges" grep -q '^NoNewPrivs:.1' $status
check "has its system calls filtered" grep -q '^Seccomp:.2' $status
check "may not write its configuration" sh -c "! nsenter -t $(pid) -m touch /etc/adit/x && [ \$(stat -c %u /etc/adit) = 0 ]"
score=$(systemd-analyze security adit 2>/dev/null | grep -o 'level for.*: [0-9.]*' | grep -o '[0-9.]*$')
echo "NOTE systemd-analyze security: $score"
check "is confined (exposure at most 2.5)" awk "BEGIN { exit !(\"$score\" != \"\" && $score <= 2.5) }"
echo "NOTE resident memory: $(awk '/VmRSS/ { print $2, $3 }' $status)"

# A relay and a service of this machine, between which the packaged daemon stands.
cp /usr/bin/adit /tmp/relay-program
mkdir -p /tmp/relay
/tmp/relay-program relay start --data_dir /tmp/relay --domain localhost --public_host 127.0.0.1 --tunnel_listen 127.0.0.1:4433 \
	--edge_http_listen 127.0.0.1:8080 --edge_https_listen 127.0.0.1:8443 --console_listen 127.0.0.1:37280 \
	--tcp_ports none --udp_ports none >/tmp/relay.log 2>&1 &
relay=$!
perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(LocalAddr => "127.0.0.1:9000", Listen => 9, ReuseAddr => 1) or die;
	while ($c = $s->accept) { while (<$c>) { last if /^\r?\n/ } print $c "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nof mine\n"; close $c }' &
mine=$!
new_client() { token=$(/tmp/relay-program relay client add lab --data_dir /tmp/relay --json | grep -o 'adit_[A-Za-z0-9_-]*' | head -1); [ -n "$token" ]; }
soon new_client 2>/dev/null
served() { curl -fs -m 10 --resolve lab.localhost:8080:127.0.0.1 http://lab.localhost:8080/ | grep -q "of mine"; }
tunnels() { adit tunnel list | grep -q 'lab'; }
check "takes the token" adit login "$token"
check "takes a tunnel" adit tunnel create 9000 --type http --domain lab
check "serves through the tunnel" soon served

old=$(pid)
begin=$(date +%s%N)
kill -9 "$old"
back() { [ "$(pid)" != 0 ] && [ "$(pid)" != "$old" ] && healthy; }
check "comes back after kill -9" soon back
echo "NOTE back after kill -9: $((($(date +%s%N) - begin) / 1000000)) ms"
check "serves again after kill -9" soon served
systemctl stop adit
begin=$(date +%s%N)
systemctl start adit
for i in $(seq 500); do healthy && break; sleep 0.005; done
echo "NOTE start to healthz: $((($(date +%s%N) - begin) / 1000000)) ms"
check "adit service restart" adit service restart
echo 'http_listen = 1' >/etc/adit/adit.toml
refuse "a restart with a mistake in adit.toml is refused" "adit.toml:1: http_listen" adit service restart
check "and has stopped nothing" healthy
rm /etc/adit/adit.toml
check "adit service stop" adit service stop
check "adit service stop, twice" adit service stop
check "adit service start" adit service start

echo kept >/var/lib/adit/marker
check "upgrades" dpkg -i /second.deb
check "runs the new version" soon version 0.2.0
check "keeps the tunnels on an upgrade" soon tunnels
check "keeps the token: serves again after an upgrade" soon served
check "keeps its state" grep -q kept /var/lib/adit/marker
systemctl disable -q --now adit
check "is installed again" dpkg -i /second.deb
check "stays disabled when somebody has disabled it" sh -c '! systemctl is-enabled adit && ! systemctl is-active adit'
systemctl enable -q --now adit
check "serves again when it is enabled" soon served
kill "$relay" "$mine"
wait "$relay" "$mine"
rm -rf /tmp/relay /tmp/relay.log /tmp/relay-program
check "is removed" dpkg -r adit
check "is installed after a removal" dpkg -i /second.deb
check "is enabled again after a removal" systemctl is-enabled adit
check "runs again after a removal" soon healthy

# Elsewhere than at the usual address, and with a token that root alone may read.
mkdir -p /etc/systemd/system/adit.service.d
printf 'http_listen = "127.0.0.1:37300"\n[local_api]\nbearer_token_file = "/run/credentials/adit.service/api-token"\n' >/etc/adit/adit.toml
(umask 077 && echo a-secret-of-the-lab >/etc/adit/api-token)
printf '[Service]\nLoadCredential=api-token:/etc/adit/api-token\n' >/etc/systemd/system/adit.service.d/token.conf
systemctl daemon-reload
check "starts at another address" adit service restart
check "an ordinary user finds it at another address" by_nobody env ADIT_BEARER_TOKEN=a-secret-of-the-lab adit status
refuse "the token is asked for" "Bearer" by_nobody adit status
check "root needs not say the token" adit status
refuse "an ordinary user does not read the token" "denied" by_nobody cat /etc/adit/api-token
rm -r /etc/adit/adit.toml /etc/adit/api-token /etc/systemd/system/adit.service.d
systemctl daemon-reload
check "stops for another daemon" adit service stop
ADIT_CONFIG_DIR=/tmp/own ADIT_STATE_DIR=/tmp/own adit start >/tmp/own.log 2>&1 &
own=$!
soon healthy
refuse "another daemon at the address is not taken for the service" "journalctl -u adit says why" adit service start
refuse "nor by the status" "does not answer" by_nobody adit service status
kill "$own"
wait "$own"
rm -rf /tmp/own /tmp/own.log
check "runs when the address is free" soon healthy
check "is removed again" dpkg -r adit
check "has stopped" sh -c "! systemctl is-active adit && ! pgrep -x adit"
check "keeps its state on removal" grep -q kept /var/lib/private/adit/marker
check "is purged" dpkg -P adit
check "the purged package leaves nothing" leaves_nothing

dpkg-deb --fsys-tarfile /first.deb | tar -xO ./usr/bin/adit >/usr/local/bin/adit
chmod 755 /usr/local/bin/adit
check "installs without a package" adit service install
check "installs again" adit service install
check "starts" adit service start
check "tells its state" adit service status
check "stays up when it is installed anew" adit service install
check "still answers" soon healthy
printf '[Service]\nExecStart=/gone\n' >/etc/systemd/system/adit.service
systemctl daemon-reload
check "mends a stale unit" adit service install
check "starts with the mended unit" adit service restart
perl -MIO::Socket::INET -e 'chdir "/releases"; $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1:9100", Listen => 9, ReuseAddr => 1) or die;
	while ($c = $s->accept) { $l = <$c>; while (<$c>) { last if /^\r?\n/ } $b = ""; if ($l =~ m{^GET /([a-z.]+) } && open F, "<", $1) { local $/; $b = <F> }
	print $c "HTTP/1.1 200 OK\r\nContent-Length: ", length $b, "\r\nConnection: close\r\n\r\n$b"; close $c }' &
server=$!
offered() { curl -fs -o /dev/null http://127.0.0.1:9100/good.json; }
soon offered
update() { adit update "$1" --manifest "http://127.0.0.1:9100/$2.json" --key "$key"; }
check "starts before the update" soon version 0.1.0
refuse "an update with a forged manifest is refused" "not signed" update apply forged
refuse "an update with another checksum is refused" "not the one" update apply checksum
begin=$(date +%s%N)
refuse "an update that does not answer is taken back" "the old program is back and well" update apply dumb
echo "NOTE taken back after: $((($(date +%s%N) - begin) / 1000000)) ms"
check "the old program answers" version 0.1.0
check "an update is told" update check good
check "an update is applied" update apply good
check "the new program answers" version 0.2.0
dpkg -i /first.deb >/tmp/said 2>&1
check "a package that it hides says so" grep -q "/etc/systemd/system/adit.service hides" /tmp/said
rm /tmp/said
check "it goes on beside the package" soon version 0.2.0
refuse "it is not installed anew beside the package" "hides it" adit service install
check "uninstalls beside the package" adit service uninstall
check "the package's service is in its place" soon version 0.1.0
check "the package's service is enabled in its place" systemctl is-enabled adit
dpkg-deb --fsys-tarfile /first.deb | tar -xO ./usr/bin/adit >/usr/local/bin/adit
before=$(pid)
check "an update of a program beside the package is applied" update apply good
check "it leaves the package's service alone" test "$(pid)" = "$before"
kill "$server"
check "the package is purged" dpkg -P adit
check "installs without a package again" adit service install
ln -sf /gone /etc/systemd/system/multi-user.target.wants/adit.service
check "uninstalls" adit service uninstall
check "uninstalls again" adit service uninstall
refuse "starting what is not there is refused" "not installed" adit service start
check "the removed service leaves nothing" leaves_no_service
refuse "an ordinary user may not install it" "root" by_nobody adit service install
echo END
