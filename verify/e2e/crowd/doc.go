// Package crowd has the tests of many boxes and many callers at once, against a helper that is built with
// the race detector. Where that cannot be built (it needs cgo and a C compiler) they are skipped as the lane
// "race".
//
// What one caller sees is tested in verify/e2e/boxes.
package crowd
