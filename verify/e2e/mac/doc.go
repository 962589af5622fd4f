// Package mac holds the tests that run the real minhost on the model of a Mac (verify/fakedarwin), from
// one end to the other: install, reboot, verify, boxes, upgrade, undo.
//
// It holds tests only, and does not stand for a Mac: what they show holds for the model; what only a Mac can show is asked by
// packaging/darwin/verify-on-a-mac.sh.
package mac
