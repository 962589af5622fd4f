// Package initscript has OpenRC and sysvinit bring minhost back at boot: it renders their scripts and holds
// the step that writes one and puts it into the runlevel.
//
// The script starts `minhost apply --at-boot`, the same engine as everywhere; helper and answerer are then
// children of linux/standalone's supervisor. The package starts and stops nothing itself, and it does not
// know runit, s6 and other managers, which have no place for a program that is run once.
package initscript
