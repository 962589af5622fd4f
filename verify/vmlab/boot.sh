#!/bin/sh
# boot.sh ROOT WORK: the first process of a machine. It runs in namespaces of its own (pid, mount,
# network, uts, ipc, cgroup), makes ROOT with a copy-on-write layer in WORK its file system, and
# becomes its /sbin/init. One line on standard input lets it go on: by then the links are in place.
# WORK holds boot_id (this boot's), console (what init prints), shared (seen as /run/lab).
set -eu
root=$1
work=$2
mkdir -p "$work/up" "$work/over" "$work/new"
mount -t overlay overlay -o "lowerdir=$root,upperdir=$work/up,workdir=$work/over" "$work/new"
cd "$work/new"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 -o nsdelegate cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm
for device in null zero full random urandom tty; do
	: >"dev/$device"
	mount --bind "/dev/$device" "dev/$device"
done
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
: >dev/console
mount --bind "$work/console" dev/console
mount -t tmpfs -o mode=755 tmpfs run
mkdir run/lab
mount --bind "$work/shared" run/lab
mount -t tmpfs -o mode=1777 tmpfs tmp
# A reboot that only restarts namespaces has the kernel's boot id of before.
mount --bind "$work/boot_id" proc/sys/kernel/random/boot_id
read -r _
mkdir -p .old
pivot_root . .old
umount -l /.old
hostname "$(cat /etc/hostname)"
exec env -i container=minhost-lab PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	/sbin/init systemd.show_status=0 </dev/null >>/dev/console 2>&1
