// Package fakedarwin is an executable model of a Mac, for tests on Linux: lo0 with masks, launchd, the
// resolver with the rules of mDNSResponder, sysctl, sudo, accounts, and reboots. It runs the real minhost,
// built with the tag fakedarwin, in a folder that looks like a Mac's root.
//
// Every rule in it was read in FACTS or reports of real Macs and is meant to hurt: bootstrap returns
// before the job ran, labels stay busy, a disabled label survives everything, every file in /etc/resolver
// is a resolver, negative answers are remembered for more than a minute.
//
// It is for tests only, needs root and namespaces of its own (verify/netlab), and is no proof of what only
// a Mac can show: packaging/darwin/verify-on-a-mac.sh is for that.
package fakedarwin
