// Package boxes holds what boxes promise against the real program on the real kernel: table, belt,
// helper, answerer and runner together, in namespaces of their own (verify/netlab). The parts have
// tests of their own beside them; a leak that only their sum has shows here.
//
// It has tests only. It does not test the installation (verify/e2e/install does), a service manager
// or a reboot.
package boxes
