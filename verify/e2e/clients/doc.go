// Package clients runs the clients in other languages that the documentation shows against the real helper, so
// that what a reader takes along works. It holds no code that anything imports, and it does not test the
// helper: verify/e2e/boxes does.
package clients
