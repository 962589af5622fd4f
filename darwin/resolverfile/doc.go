// Package resolverfile has macOS send lookups of the zone to the answerer, by one file in /etc/resolver.
//
// It renders that file, tells ours from everybody else's, and reads what came of it: what scutil shows and
// what a lookup by the system's own resolver gives. It never changes another file of the folder, and it
// never writes the file over an answerer that does not answer: each lookup would then stall for up to a
// minute.
//
// Beware: every file in the folder becomes a resolver, temporary ones and copies too, and the parser of
// macOS takes one blank between two words and LF at the end of a line, nothing else.
package resolverfile
