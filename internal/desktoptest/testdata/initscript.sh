# Runs in a small Debian of its own network and processes, as root, without
# systemd: the service's whole life under the init system that $1 names.
manager=$1
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
api=http://127.0.0.1:37271
check() { # name, command…
	local name="$manager: $1" out
	shift
	if out=$("$@" 2>&1); then echo "PASS $name"; else echo "FAIL $name: $(echo "$out" | tail -5 | tr '\n' ' ')"; fi
}
healthy() { curl -fs -m 20 $api/healthz >/dev/null; }
soon() { local end=$((SECONDS + 60)); while [ $SECONDS -lt $end ]; do "$@" && return; sleep 0.05; done; return 1; }
never() { ! "$@"; }
pid() { pgrep -u adit -x adit; }
state() { adit service status --json | grep -q "\"state\": *\"$1\""; }
links() { find /etc/rc?.d /etc/runlevels -name '*adit' 2>/dev/null; }
leaves_nothing() {
	local left
	left=$(find /etc /run /var/log /usr/lib -xdev -iname '*adit*' -print)
	[ -z "$left" ] || { echo "left: $left"; return 1; }
}

if [ "$manager" = openrc ]; then
	# What OpenRC makes when it boots a machine.
	mkdir -p /run/openrc/{starting,started,stopping,inactive,wasinactive,failed,hotplugged,daemons,options,exclusive,scheduled,tmp} /run/lock
	echo default >/run/openrc/softlevel
fi

check "nothing is installed" state "not installed"
check "installs" adit service install
check "says who manages it" sh -c "adit service status --json | grep -q '\"manager\": *\"$manager\"'"
check "is to start with the machine" test -n "$(links)"
if [ "$manager" = openrc ]; then check "is in the default runlevel, and in no other" test "$(links)" = /etc/runlevels/default/adit; fi
check "installs again" adit service install
check "is stopped" state stopped
check "starts" adit service start
check "starts, twice" adit service start
check "answers" healthy
check "is running" state running
check "runs without root" test -n "$(pid)"
check "keeps its state in its folder" test -d /var/lib/adit
check "an ordinary user may ask for the status" setpriv --reuid=65534 --regid=65534 --clear-groups env -i PATH="$PATH" HOME=/nonexistent adit service status

check "writes its log" grep -q "daemon started" /var/log/adit/adit.log
check "has nothing to say beside its log" sh -c '! test -s /var/log/adit/adit.err'

old=$(pid)
begin=$(date +%s%N)
kill -9 "$old"
back() { [ -n "$(pid)" ] && [ "$(pid)" != "$old" ] && healthy; }
check "comes back after kill -9" soon back
echo "NOTE $manager: back after kill -9: $((($(date +%s%N) - begin) / 1000000)) ms"

check "restarts" adit service restart
check "answers after the restart" healthy
check "stops" adit service stop
check "has ended" never pgrep -x adit
check "stops, twice" adit service stop
check "is stopped again" state stopped
check "starts again" adit service start
check "answers again" soon healthy
kill -STOP "$(pid)"
check "stops while the daemon hangs" adit service stop
check "leaves no daemon that hangs" soon never pgrep -x adit
check "starts after that" adit service start
check "stays up when it is installed anew" adit service install
check "still answers" soon healthy
check "uninstalls" adit service uninstall
check "has ended with it" never pgrep -x adit
check "leaves no link" test -z "$(links)"
check "leaves nothing" leaves_nothing
check "uninstalls again" adit service uninstall
check "is not installed" state "not installed"
ln -sf ../init.d/adit /etc/rc2.d/S50adit
check "removes dangling links" sh -c 'adit service uninstall && ! test -L /etc/rc2.d/S50adit'
echo
echo END
