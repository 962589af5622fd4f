// Package vm installs, tries and removes the real minhost in virtual machines with the distributions'
// own kernels, by emulation (QEMU, TCG), without any right to accelerate it: bookworm has 6.1, trixie
// 6.12. What is cheaper to see on this machine's kernel is verify/vmlab/hosts' matter, and nothing is
// measured here: everything takes ten to fifty times as long.
//
// An image is a Debian root (../mkroot.sh) with a kernel (mkimage.sh), made once and kept in
// $MINHOST_LAB, else $XDG_CACHE_HOME/minhost-lab, else /var/cache/minhost-lab. A machine boots a
// copy-on-write view of it; the program guest is its initial ram disk, its test and its boxes, and
// prints a line for each check to a serial port.
//
// By hand: $MINHOST_VM_SCRIPT names a shell script that runs in the guest in place of
// everything else, with minhost, guest and probe in /mnt.
package vm
