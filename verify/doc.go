// Package verify says whether a host does what finalize-install promised: it reads the host the way
// its users do (it binds the range, asks the answerer over the wire, calls the helper), adds what the
// steps' probes saw and what the helper checked as root, and makes one report of it.
//
// It changes nothing and mends nothing: a row that is not ok names the command that does. It takes
// no marker, log line or journal for proof; what cannot be observed is a row of state unknown.
package verify
