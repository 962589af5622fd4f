// Package release builds the program as it is released and looks into the files: what a Mac would have to
// load, from which version on it runs, and that nothing of the tests' models is in it.
//
// It holds tests only and does not run what it builds.
package release
