// Package install installs, takes back, breaks and mends a whole host with the real program: every
// promise that finalize-install, apply, undo and the supervisor make to an admin, on the real kernel.
//
// It has no code beside its tests. What a box may reach is not looked at here (verify/e2e/boxes).
package install
