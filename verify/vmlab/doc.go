// Package vmlab runs whole Debian systems for tests: the suite's own systemd boots as process 1 of
// namespaces on this kernel, in about two seconds, with systemd-resolved, networkd, D-Bus and
// nftables as on a host; it can be rebooted. Roots are made once by mkroot.sh and kept in a folder
// outside the repository ($MINHOST_LAB, else $XDG_CACHE_HOME/minhost-lab, else
// /var/cache/minhost-lab).
//
// The kernel is the machine's: no module is loaded, no device driver runs, and what an own kernel
// does at boot is not tested here. It is for tests only.
package vmlab
