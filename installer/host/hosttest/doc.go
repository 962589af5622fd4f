// Package hosttest holds fakes of the edges in installer/host, snapshots of a host, and the one
// loop that crashes an installation at every change it makes and asks whether the next run mends
// it (CutEverywhere).
//
// It is for tests only, and fakes no kernel: steps that touch one run through CutEverywhere in the
// namespaces of verify/netlab.
package hosttest
