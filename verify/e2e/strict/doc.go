// Package strict goes through every way that a program of the same account has to get others to act
// for it: from a cooperative box each is open, from a strict one each is closed.
//
// It is tests only, with probes that run in boxes of the real program. It does not look at what a box's
// own packets reach: verify/e2e/egress does.
package strict
