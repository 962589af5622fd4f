// Command dnsconf puts the same questions to the answerer and to other authoritative name servers
// and says which of them answer as the standards ask: a hundred and ten checks of lookups, EDNS, broken
// messages and TCP, each of one property.
//
// It starts NSD, Knot and BIND on loopback with the same small zone, where their programs are, and
// prints a line for each check that they do not all pass. It fails when ours fails a check, whoever
// else does. The same checks run against our answerer alone in the package's test.
//
// It measures nothing; verify/benchdns does. The checks share no code with the answerer.
package main
