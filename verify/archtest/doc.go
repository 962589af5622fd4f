// Package archtest holds the shape of the source as tests: which package may import which, which
// third-party module is used where, and the house rules that a compiler does not know (package
// comments, file length, no init, no exit below main, no system switch below cmd, no shell).
//
// It has no code of its own beside its tests, and it does not judge what the code does. A rule is
// data with a reason; who needs an exception changes the data and gives a reason too.
package archtest
