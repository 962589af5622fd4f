// Package scripttest runs the script of installer.Script as root, in the namespaces of
// verify/netlab. It holds tests only: the script writes to system folders.
package scripttest
