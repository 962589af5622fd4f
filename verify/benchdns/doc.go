// Command benchdns measures the answerer beside other name servers on this machine: how many
// queries a second one core answers, what a query costs of it, and how long a single query takes.
// Ours is measured a second time while its zone changes a thousand times a second, and then alone: how
// long after its write a change is answered, and how long a query of the host takes while a box floods.
//
// The server is held to one core and the client to another; the servers take turns, so that what
// else the machine does meets all alike, and only ratios within one run mean something. It starts
// the servers itself, on loopback, with a zone of 200 names and a mix of 70 % A, 10 % AAAA,
// 10 % HTTPS and 10 % names that do not exist, and it stops them again. A server whose program is
// not there is left out with a line. On a machine that does other work too, run it under "nice -n -15",
// never under a real-time policy: with one, nothing else runs on either core, and it may not end.
// It judges no answer: verify/dnsconf does.
package main
