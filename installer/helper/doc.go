// Package helper is the privileged daemon: it serves dev.minimal.Host on a unix socket, keeps the
// leases, and makes tree, table and names follow them (DESIGN.md section 8).
//
// Who calls is read from the kernel, never from a message; every method has one access rule
// (access.go) and no rule means no. What it does to the host goes through the small ports of
// ports.go, which cmd/minhost wires to the packages of the system.
//
// It does not create the tree, the belt or its own socket (the steps of the installer and the
// service manager do), does not answer DNS, and executes nothing.
package helper
