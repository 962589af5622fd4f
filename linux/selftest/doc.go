// Package selftest tries on the live kernel whether boxes are held: first a control connection from
// outside any leaf, which must succeed, then the same from a throw-away leaf that no rule knows, which
// must not (DESIGN.md 5.1).
//
// Nothing else finds a rule with a wrong level or byte order, or a kernel that does not match cgroup2
// sockets: such rules load and never match (CASES B07, B20, B34).
//
// It tests refusal over IPv4 and TCP only, on loopback, and no box's own verdict. It changes nothing but
// the leaf that it makes and removes.
package selftest
