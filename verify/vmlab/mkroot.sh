#!/bin/sh
# mkroot.sh SUITE FOLDER PACKAGE...: makes FOLDER, a Debian root of that suite with its own systemd
# as /sbin/init and an account "runner" (uid 1500). As root; about a minute and 400 MB. The mirror
# and the proxy are those that this machine's apt uses. Nothing outside FOLDER and FOLDER.part is
# written; a build that was cut off is begun again.
set -eu
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C

suite=$1
root=$2
shift 2
include=systemd,systemd-sysv,dbus,nftables,iproute2
for package in "$@"; do
	include=$include,$package
done

# The first source of Debian itself: not its security archive, not somebody else's.
# shellcheck disable=SC2016 # apt fills them in
mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(SITE)' 'Created-By: Packages' |
	awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }')
if [ -z "$mirror" ]; then
	echo "mkroot: apt on this machine has no source of Debian" >&2
	exit 1
fi
eval "$(apt-config shell proxy Acquire::http::Proxy)"
if [ -n "${proxy:-}" ] && [ "$proxy" != DIRECT ]; then
	export http_proxy="$proxy"
fi

# A suite that is newer than this machine's debootstrap is made as sid is.
script=
[ -e "/usr/share/debootstrap/scripts/$suite" ] || script=sid

# One file system: what a killed build left mounted in there is not this script's to empty.
rm -rf --one-file-system "$root.part"
debootstrap --variant=minbase --include="$include" "$suite" "$root.part" "$mirror" ${script:+"$script"}

cd "$root.part"
rm -rf var/cache/apt/* var/lib/apt/lists/* usr/share/doc/* usr/share/man/* usr/share/locale/*
echo "$suite" >etc/hostname
printf '127.0.0.1 localhost %s\n::1 localhost ip6-localhost\n' "$suite" >etc/hosts
# Written at the first boot otherwise, which would then differ from all others.
echo 0123456789abcdef0123456789abcdef >etc/machine-id
chroot . useradd -m -s /bin/sh -u 1500 runner
# eth0 is the way to the tests' outside world (192.0.2.0/24 is minhost's own link).
mkdir -p etc/systemd/network
cat >etc/systemd/network/50-lab.network <<'END'
[Match]
Name=eth0
[Network]
Address=198.51.100.2/24
Address=2001:db8:51::2/64
Gateway=198.51.100.1
Gateway=2001:db8:51::1
DNS=198.51.100.1
LinkLocalAddressing=no
IPv6AcceptRA=no
END
chroot . systemctl enable systemd-networkd.service >/dev/null 2>&1
if [ -e usr/lib/systemd/systemd-resolved ] || [ -e lib/systemd/systemd-resolved ]; then
	chroot . systemctl enable systemd-resolved.service >/dev/null 2>&1
	ln -sf ../run/systemd/resolve/stub-resolv.conf etc/resolv.conf
fi
# What costs time at boot and has nothing to do with a network.
for unit in apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer e2scrub_reap.service \
	fstrim.timer dpkg-db-backup.timer systemd-timesyncd.service console-getty.service \
	getty@tty1.service systemd-networkd-wait-online.service systemd-hwdb-update.service \
	systemd-update-utmp.service systemd-random-seed.service ldconfig.service \
	systemd-journal-catalog-update.service; do
	ln -sf /dev/null "etc/systemd/system/$unit"
done
cd /
mv "$root.part" "$root"
