#!/bin/sh
# Before installation. That a package comes back which was removed and not purged
# dpkg tells here alone: later it looks like an upgrade, which would leave the
# service as the removal has left it, disabled.
set -e
case "${1:-}" in
install) [ -z "${2:-}" ] || : >/run/adit-returns || true ;;
esac
exit 0
