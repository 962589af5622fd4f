#!/bin/sh
# postinstall.sh: after the package's files are in place, at its first installation and at an upgrade.
set -e
if [ -d /run/systemd/system ]; then
	systemd-sysusers minhost.conf
	systemd-tmpfiles --create minhost.conf
fi
if [ -e /var/lib/minhost/journal.json ]; then
	# A host that was prepared: the new version in place of the old, under live boxes.
	/usr/bin/minhost finalize-install --yes
else
	echo "minhost: nothing is prepared yet; next: minhost finalize-install --show"
fi
