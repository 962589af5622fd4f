// Package cells installs, uses, reboots and removes the real minhost on Debian systems that differ in who
// manages the network, who looks names up and which firewall is there: every pair of these is in one of the
// cells. It does not break anything (verify/vmlab/hosts does) and runs on this machine's kernel only.
package cells
