#!/bin/sh
# after-reboot.sh: what "minhost verify --after-reboot" looks at, in a form that an admin can read and
# type. Run as root on a Linux host, in the boot after "minhost verify --before-reboot". It changes
# nothing. One line a check; exit status 0 when all are ok, 1 when one is not.
#
# The program looks deeper (it compares the table with what it should be, tries to connect from a box
# that does not exist, reads the belt back): it is asked last.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
minhost=/usr/local/lib/minhost/minhost
marker=/var/lib/minhost/reboot.json
failed=0

check() { # check WHAT COMMAND...: the command says whether it is so
	what=$1
	shift
	if "$@" >/dev/null 2>&1; then
		echo "ok    $what"
	else
		echo "FAIL  $what"
		failed=1
	fi
}

# shellcheck disable=SC2317 # called through check, as the other functions are
another_boot() {
	expected=$(sed -n 's/^ "boot_id": "\(.*\)",$/\1/p' "$marker")
	[ -n "$expected" ] && [ "$expected" != "$(cat /proc/sys/kernel/random/boot_id)" ]
}

# The cgroup2 mount, unified or hybrid, and below it the tree: of the unit, or minhost's own.
# shellcheck disable=SC2317
tree() {
	mount=$(awk '$0 ~ / - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
	[ -d "$mount/system.slice/minhost-tree.service/boxes" ] || [ -d "$mount/minhost/boxes" ]
}

# shellcheck disable=SC2317
hooked() { nft list table inet minhost | grep -q 'type filter hook output'; }

# UDP and TCP, as the kernel lists them: 127.0.0.1:15353 is 0100007F:3BF9.
# shellcheck disable=SC2317
listens() { grep -q ' 0100007F:3BF9 ' /proc/net/udp && grep -q ' 0100007F:3BF9 ' /proc/net/tcp; }

# Only where min0 sends the zone to the answerer: host.min.internal is always 127.0.0.1.
# shellcheck disable=SC2317
resolves() { [ ! -e /sys/class/net/min0 ] || getent ahostsv4 host.min.internal | grep -q '^127\.0\.0\.1 '; }

check "an expectation was kept ($marker)" test -f "$marker"
check "this is another boot than the one that kept it" another_boot
check "the cgroup tree is there" tree
check "the table is there, with its hook" hooked
check "the answerer listens on 127.0.0.1:15353, UDP and TCP" listens
check "names of the zone resolve for programs that use libc" resolves
check "the helper answers" "$minhost" status
if [ -d /run/systemd/system ]; then
	for unit in minhost-tree.service minhost-helper.socket minhost-helper.service \
		minhost-resolverd.socket minhost-resolverd.service; do
		check "$unit runs" systemctl -q is-active "$unit"
	done
	echo 'ready in this boot, by the journal (seconds after kernel start):'
	journalctl --boot --no-pager --output=short-monotonic MESSAGE_ID=39f53479d3a045ac8e11786248231fbf |
		grep ' minhost' || true
fi
check "minhost verify --after-reboot" "$minhost" verify --after-reboot
exit "$failed"
