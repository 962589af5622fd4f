#!/bin/sh
# mkimage.sh ROOT FOLDER: makes FOLDER, what a virtual machine needs of a Debian root that has a
# kernel: disk (ext4), vmlinuz, and modules/ with the drivers of its disk in the order in which they
# are loaded. As root. The root folder is changed (unit, fstab); nothing else outside FOLDER and
# FOLDER.part is written.
set -eu
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C

root=$1
out=$2
rm -rf --one-file-system "$out.part"
mkdir -p "$out.part/modules"

kernel=$(cd "$root/lib/modules" && echo *)
case $kernel in
*' '* | '*')
	echo "mkimage: want one kernel in $root, found: $kernel" >&2
	exit 1
	;;
esac
cp "$root/boot/vmlinuz-$kernel" "$out.part/vmlinuz"
echo "$kernel" >"$out.part/release"

# The initrd of the distribution takes 20 s to unpack where nothing is accelerated; a few modules do.
n=10
for module in virtio_pci virtio_blk ext4; do
	chroot "$root" modprobe -S "$kernel" --show-depends "$module"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r file; do
	to=$out.part/modules/$n.ko
	case $file in
	*.xz) xz -dc "$root$file" >"$to" ;;
	*.zst) zstd -dcq "$root$file" >"$to" ;;
	*) cp "$root$file" "$to" ;;
	esac
	n=$((n + 1))
done

cat >"$root/etc/systemd/system/lab.service" <<'UNIT'
[Unit]
Description=tests of the lab
Wants=dbus.service
After=basic.target dbus.service systemd-resolved.service systemd-networkd.service
[Service]
Type=oneshot
ExecStartPre=/bin/mount -o ro /dev/vdb /mnt
ExecStart=/mnt/guest lab
TimeoutStartSec=infinity
UNIT
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -sf ../lab.service "$root/etc/systemd/system/multi-user.target.wants/lab.service"
printf '/dev/vda / ext4 rw,noatime 0 0\n' >"$root/etc/fstab"
# Devices that nothing here uses, and what looks for hardware: seconds each where nothing is
# accelerated.
for unit in serial-getty@ttyS0.service dev-ttyS0.device systemd-pcrphase.service \
	systemd-pcrphase-sysinit.service systemd-binfmt.service dev-hugepages.mount dev-mqueue.mount \
	sys-kernel-debug.mount sys-kernel-tracing.mount modprobe@configfs.service modprobe@drm.service \
	modprobe@fuse.service modprobe@efi_pstore.service modprobe@dm_mod.service \
	modprobe@loop.service systemd-boot-random-seed.service systemd-tpm2-setup.service \
	systemd-tpm2-setup-early.service systemd-journal-flush.service; do
	ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
rm -rf "$root"/boot/initrd* "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/*

mke2fs -q -t ext4 -d "$root" -L root -E lazy_itable_init=1,lazy_journal_init=1 "$out.part/disk" 1400M
rm -rf --one-file-system "$out"
mv "$out.part" "$out"
