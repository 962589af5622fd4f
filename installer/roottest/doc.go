// Package roottest holds the tests of the engine that need root and mounts of their own: the
// script of installer.Script, read-only file systems, and a plan looked at by two users. They run
// in the namespaces of verify/netlab. It has no other code.
package roottest
