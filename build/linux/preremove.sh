#!/bin/sh
# Runs before removal. On an upgrade (deb: $1 upgrade, rpm: $1 above 0), the service
# keeps running the old program until it is restarted with the new one.
set -e
case "${1:-}" in
upgrade | deconfigure | failed-upgrade) exit 0 ;;
[1-9]) exit 0 ;;
esac
if [ -x /sbin/openrc-run ] && [ -e /etc/init.d/adit ]; then
	rc-service adit stop >/dev/null 2>&1 || true
	rc-update delete adit >/dev/null 2>&1 || true
elif command -v systemctl >/dev/null 2>&1; then
	if [ -d /run/systemd/system ]; then systemctl stop adit.service || true; fi
	systemctl disable adit.service >/dev/null 2>&1 || true
fi
exit 0
