#!/bin/sh
# postremove.sh: after the package's files are gone. The folders that tmpfiles.d made go when nothing is in
# them; the group stays, as a distribution's groups do.
set -e
case "$1" in
remove | purge | 0)
	rmdir /run/minhost /var/lib/minhost 2>/dev/null || true
	;;
esac
