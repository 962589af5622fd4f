#!/bin/sh
# Read by Machine.Snapshot, and run in the machine as root. What systemd writes about itself while
# it runs is left out: nothing of it is an installation's.
set -eu
find /etc /usr/local /var/lib /home /opt -xdev \( -path /var/lib/systemd -o -path /var/lib/dbus \) -prune -o \
	-printf 'file %p %y %m %u:%g %l\n'
find /etc /usr/local -xdev -type f -exec sha256sum {} + | sed 's/^/content /'
find /run -xdev -mindepth 1 \( -path /run/lab -o -path /run/log -o -path /run/systemd -o -path /run/user -o -path /run/dbus \) -prune -o \
	-printf 'run %p %y %m %u:%g %l\n'
[ ! -d /run/systemd ] || find /run/systemd -xdev \( -name '*minhost*' -o -path '/run/systemd/system*' -o -path '/run/systemd/transient*' \) -printf 'run %p %y %m\n'
if [ -d /run/systemd/system ]; then
	systemctl list-unit-files --no-legend --no-pager | sed 's/^/unitfile /'
	systemctl list-units --all --plain --no-legend --no-pager 'minhost*' | sed 's/^/unit /'
	systemctl list-units --plain --no-legend --no-pager --state=failed | sed 's/^/failed /'
	systemctl list-jobs --no-legend --no-pager | sed 's/^/job /'
fi
# eth0 and its routes are the lab's: another cable after each boot.
ip -o link | sed '/: eth0@/d; s/^[0-9]*: /link /'
ip -o address | sed '/ eth0 .* fe80:/d; s/^[0-9]*: /address /; s/ tentative//; s/ valid_lft.*//'
ip -4 route show table all | sed 's/^/route /'
ip -6 route show table all | sed '/dev eth0/d; s/^/route6 /; s/ expires [0-9a-z]*//'
ip rule | sed 's/^/rule /'
nft list ruleset | sed 's/counter packets [0-9]* bytes [0-9]*/counter/; s/^/nft /'
find /sys/fs/cgroup -type d | grep -v -e '/user.slice/' -e 'systemd-hostnamed' -e 'systemd-timedated' | sed 's/^/cgroup /'
ss -Hlntu | awk '{ print "socket", $1, $5 }' | sort -u
ps -eo comm= | sed -n '/minhost/s/^/process /p'
if [ -d /run/systemd/system ] && systemctl -q is-active systemd-resolved.service; then
	resolvectl --no-pager dns | sed 's/^/resolved /'
	resolvectl --no-pager domain | sed 's/^/resolved domain /'
	resolvectl --no-pager default-route | sed 's/^/resolved default /'
fi
