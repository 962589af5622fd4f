// Package filestep is the Step that most of an installation consists of: one file with known
// bytes, owner and mode, and the folders above it.
//
// It knows what is minhost's by a marker in the bytes, keeps what it replaces, and on undo gives
// back exactly that. It does not merge into files of others, and does not tell a program that a
// file changed: a step of its own does that.
package filestep
