// Package darwin holds the steps that prepare a Mac for boxes: the loopback range, the launchd
// jobs, the resolver file (DESIGN.md section 6). Rendering is in files without a build tag, so that
// every system can test it; what asks the kernel is in files that end in _darwin.go.
//
// It does not enforce egress: macOS gives no verdict per box without a network extension, and this
// package does not pretend otherwise. It keeps no lease and answers no caller.
package darwin
