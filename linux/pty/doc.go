// Package pty makes pseudo terminals: one end for a program that must not have its caller's terminal,
// the other for who stands between the two.
//
// It moves no octet and starts nothing; the caller does both.
package pty
