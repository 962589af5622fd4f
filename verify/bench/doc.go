// Package bench measures the installed program on the real kernel, in namespaces of its own, each
// figure beside what the kernel alone takes in the same run. `make bench` prints the ratios.
//
// It tests nothing: no test of the project depends on a time.
package bench
