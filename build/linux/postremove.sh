#!/bin/sh
# Runs after removal. The service's data stays until the package is purged.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
case "${1:-}" in
purge)
	rm -rf /var/lib/adit /var/lib/private/adit /var/log/adit
	# A relay on this machine has its configuration there, too, and belongs to no package.
	folder=/etc/adit
	for file in /etc/adit/relay*; do
		if [ -e "$file" ]; then folder=/etc/adit/adit.toml; fi
	done
	rm -rf "$folder"
	if [ -d /run/systemd/system ]; then systemctl reset-failed adit.service >/dev/null 2>&1 || true; fi
	;;
esac
exit 0
