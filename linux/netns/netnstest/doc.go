// Package netnstest tests linux/netns with namespaces, devices and processes of the kernel (verify/netlab). It
// holds no code that anything imports, and it does not test who asks for what: the helper's tests do.
package netnstest
