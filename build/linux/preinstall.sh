#!/bin/sh
# Runs before installation. If a package was removed but not purged, dpkg shows this
# only here: later, the installation looks like an upgrade, and the service would
# stay disabled, as the removal left it.
set -e
case "${1:-}" in
install) [ -z "${2:-}" ] || : >/run/adit-returns || true ;;
esac
exit 0
