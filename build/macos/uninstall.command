#!/bin/sh
# Removes adit from this Mac. Double-click it, or run it with --purge to remove
# configuration and token too.
if [ "$(id -u)" != 0 ]; then exec sudo "$0" "$@"; fi
for person in $(ps -axo uid= | sort -un); do
	[ "$person" -ge 500 ] && launchctl bootout "gui/$person/dev.adit.tray" 2>/dev/null
done
launchctl bootout system/dev.adit.daemon 2>/dev/null
launchctl enable system/dev.adit.daemon 2>/dev/null # a new installation should run it
rm -f /Library/LaunchDaemons/dev.adit.daemon.plist /Library/LaunchAgents/dev.adit.tray.plist
[ "$(readlink /usr/local/bin/adit)" = /Applications/Adit.app/Contents/MacOS/adit ] && rm -f /usr/local/bin/adit
rm -rf /Applications/Adit.app /Library/Logs/Adit
[ "${1:-}" = --purge ] && rm -rf "/Library/Application Support/Adit"
pkgutil --forget dev.adit.pkg >/dev/null 2>&1
echo "adit is removed."
