#!/bin/sh
# mkfull.sh BASE FOLDER PACKAGE...: makes FOLDER, a copy of the Debian root BASE (mkroot.sh) with more
# packages. What they enable in systemd is disabled again: a scenario enables what it is about. As root;
# nothing outside FOLDER and FOLDER.part is written.
set -eu
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive

base=$1
root=$2
shift 2
eval "$(apt-config shell proxy Acquire::http::Proxy)"
if [ -n "${proxy:-}" ] && [ "$proxy" != DIRECT ]; then
	export http_proxy="$proxy"
fi

rm -rf --one-file-system "$root.part"
cp -a "$base" "$root.part"
cd "$root.part"
mv etc/resolv.conf etc/resolv.conf.lab
cat /etc/resolv.conf >etc/resolv.conf
cp etc/hosts etc/hosts.lab
cat /etc/hosts >etc/hosts
# Nothing is started while packages are installed.
printf '#!/bin/sh\nexit 101\n' >usr/sbin/policy-rc.d
chmod 755 usr/sbin/policy-rc.d
before=$(find etc/systemd/system -type l | sort)
chroot . apt-get -q update
chroot . apt-get -q -y --no-install-recommends install "$@"
find etc/systemd/system -type l | sort | while read -r link; do
	case "$before" in
	*"$link"*) ;;
	*) rm "$link" ;;
	esac
done
rm -rf usr/sbin/policy-rc.d var/cache/apt/*.bin var/cache/apt/archives/*.deb var/lib/apt/lists/* usr/share/doc/* usr/share/man/* usr/share/locale/*
mv etc/resolv.conf.lab etc/resolv.conf
mv etc/hosts.lab etc/hosts
cd /
mv "$root.part" "$root"
