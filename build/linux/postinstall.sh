#!/bin/sh
# Runs after an installation or upgrade of deb ($1 configure), rpm ($1 count), apk and Arch.
set -e

first=yes
case "${1:-}" in
configure) [ -z "${2:-}" ] || [ -e /run/adit-returns ] || first=no ;;
abort-*) exit 0 ;;
[2-9]) first=no ;; # rpm passes a count; apk and Arch pass a version, followed by the old one
*) [ -z "${2:-}" ] || first=no ;;
esac

rm -f /run/adit-returns

if command -v systemctl >/dev/null 2>&1 && [ ! -x /sbin/openrc-run ]; then
	running=no
	[ ! -d /run/systemd/system ] || running=yes
	if [ $running = yes ]; then systemctl daemon-reload || true; fi
	# On an upgrade, a disabled service stays disabled.
	if [ $first = yes ]; then systemctl enable adit.service >/dev/null 2>&1 || true; fi
	if [ $running = yes ]; then
		if [ $first = yes ] || systemctl is-active --quiet adit.service; then
			systemctl restart adit.service || echo "adit: the service did not start: see journalctl -u adit" >&2
		fi
	fi
	# A unit from an earlier "adit service install" takes precedence over the package's.
	# An edited copy of the package's unit is fine: it runs the package's program.
	own=/etc/systemd/system/adit.service
	if [ -f $own ]; then
		case $(cat $own) in
		*"ExecStart=/usr/bin/adit "*) ;;
		*) echo "adit: $own hides the package's service: sudo /usr/bin/adit service uninstall removes it" >&2 ;;
		esac
	fi
elif [ -x /sbin/openrc-run ] && [ -e /etc/init.d/adit ]; then
	addgroup -S adit 2>/dev/null || true
	adduser -S -D -H -h /var/lib/adit -s /bin/false -G adit adit 2>/dev/null || true
	if [ $first = yes ]; then rc-update add adit default >/dev/null 2>&1 || true; fi
	if [ -d /run/openrc ]; then
		if [ $first = yes ] || rc-service adit status >/dev/null 2>&1; then rc-service adit restart || true; fi
	fi
fi

if [ $first = yes ] && [ ! -e /var/lib/adit/auth.json ]; then
	echo "adit: open http://127.0.0.1:37271 and paste the auth token, or run: adit login TOKEN"
fi
exit 0
