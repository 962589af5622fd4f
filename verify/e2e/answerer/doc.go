// Package answerer runs the program's answerer as its own user beside the resolvers that people
// have: it shows that each of them takes every answer at once and asks no second time. It holds no
// code that anything imports, and it does not judge messages: verify/dnsconf does.
package answerer
