// Command benchdns measures the answerer beside other name servers on this machine: how many
// queries a second one core answers, what a query costs of it, and how long a single query takes.
//
// The server is held to one core and the client to another; the servers take turns, so that what
// else the machine does meets all alike, and only ratios within one run mean something. It starts
// the servers itself, on loopback, with a zone of 200 names and a mix of 70 % A, 10 % AAAA,
// 10 % HTTPS and 10 % names that do not exist, and it stops them again. A server whose program is
// not there is left out with a line. On a machine that does other work too, run it under
// "chrt -f 10": before everything else on the two cores. It judges no answer: verify/dnsconf does.
package main
