package resolverfile

import (
	"bufio"
	"bytes"
	"net/netip"
	"strconv"
	"strings"
)

// Resolver is one block of "scutil --dns".
type Resolver struct {
	Domain  string
	Servers []string
	Port    int // 0 when none is shown: 53
}

// ParseScutil reads the first list: the second one ("for scoped queries") repeats resolvers by interface
// and is asked by nobody who looks up a plain name.
func ParseScutil(text []byte) []Resolver {
	var all []Resolver
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "DNS configuration (") {
			break
		}
		if strings.HasPrefix(line, "resolver #") {
			all = append(all, Resolver{})
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok || len(all) == 0 {
			continue
		}
		r := &all[len(all)-1]
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case key == "domain":
			r.Domain = strings.TrimSuffix(value, ".")
		case strings.HasPrefix(key, "nameserver["):
			r.Servers = append(r.Servers, value)
		case key == "port":
			r.Port, _ = strconv.Atoi(value)
		}
	}
	return all
}

// asks says whether a resolver sends its domain to the server.
func (r Resolver) asks(s netip.AddrPort) bool {
	return len(r.Servers) == 1 && r.Servers[0] == s.Addr().String() && r.Port == int(s.Port())
}

// shown says whether the system uses the file, and what else claims the zone. The domain is compared as
// a whole: admin.internal is not min.internal.
func (z Zone) shown(all []Resolver) (ok bool, conflicts []string) {
	for _, r := range all {
		switch {
		case r.Domain != z.Name:
		case r.asks(z.Server):
			ok = true
		default:
			port := r.Port
			if port == 0 {
				port = 53
			}
			conflicts = append(conflicts, strings.Join(r.Servers, " ")+" port "+strconv.Itoa(port))
		}
	}
	return ok, conflicts
}
