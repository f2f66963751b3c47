#!/bin/sh
# After removal. What the service has written stays until the package is purged.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
case "${1:-}" in
purge)
	rm -rf /var/lib/adit /var/lib/private/adit /etc/adit /var/log/adit
	if [ -d /run/systemd/system ]; then systemctl reset-failed adit.service >/dev/null 2>&1 || true; fi
	;;
esac
exit 0
