// Package resolved makes the names of boxes known to the host: by a link of our own, min0, whose DNS
// server is the answerer and whose only routing domain is the zone.
//
// It also reads, without changing any of it, how programs of this host look names up, and says
// which of them will see the zone. It never writes resolv.conf, nsswitch.conf or resolved.conf, and
// never touches a link that it did not make. It reads facts from netlink and D-Bus, not from the
// text of resolvectl or ip.
package resolved
