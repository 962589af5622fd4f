#!/bin/sh
# preremove.sh: before the package's files go. dpkg says "remove" or "upgrade", rpm how many stay. With live
# boxes the undo refuses and names them, and the package stays.
set -e
case "$1" in
remove | 0)
	if [ -e /var/lib/minhost/journal.json ]; then
		/usr/bin/minhost finalize-install --undo --yes
	fi
	;;
esac
