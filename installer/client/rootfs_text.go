package client

import (
	"bytes"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/gominimal/minhost/installer/api"
)

// maxServers is what glibc and musl read of resolv.conf (MAXNS); more are passed over without a word.
const maxServers = 3

// dnsPort is the only port that resolv.conf can mean.
const dnsPort = 53

// hostName is a name of letters, digits and hyphens: nothing that ends a line or a word.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)

// localhosts is what a hosts file begins with where there was none.
const localhosts = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"

// resolverText is a resolv.conf with these servers. Without any, libc asks 127.0.0.1, where a box has its own
// servers or none.
func resolverText(servers []string) ([]byte, error) {
	if len(servers) > maxServers {
		return nil, fmt.Errorf("%d name servers: resolv.conf takes %d, and programs pass over the rest", len(servers), maxServers)
	}
	var b bytes.Buffer
	b.WriteString("# minhost: the servers of this box\n")
	for _, s := range servers {
		a, err := server(s)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "nameserver %s\n", a)
	}
	return b.Bytes(), nil
}

// server reads an address, with the one port that may be left out.
func server(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err == nil {
		if strings.ContainsFunc(a.Zone(), func(c rune) bool { return c <= ' ' || c == 0x7f }) {
			return a, fmt.Errorf("name server %q: it is not an address", api.Text(s))
		}
		return a, nil
	}
	ap, perr := netip.ParseAddrPort(s)
	if perr != nil {
		return a, fmt.Errorf("name server %q: it is not an address", api.Text(s))
	}
	if ap.Port() != dnsPort {
		return a, fmt.Errorf("name server %s: resolv.conf has no ports, every server in it is asked on %d", ap, dnsPort)
	}
	return server(ap.Addr().String())
}

// hostsText puts entries into a hosts file: other lines for their names lose them.
func hostsText(old []byte, entries []api.HostEntry) ([]byte, error) {
	var ours []string
	var lines bytes.Buffer
	for _, e := range entries {
		a, err := netip.ParseAddr(e.Address)
		if err != nil || a.Zone() != "" {
			return nil, fmt.Errorf("host %q: %q is not an address", api.Text(e.Name), api.Text(e.Address))
		}
		if len(e.Name) > 253 || !hostName.MatchString(e.Name) {
			return nil, fmt.Errorf("host %q: it is not a name", api.Text(e.Name))
		}
		ours = append(ours, strings.ToLower(e.Name))
		fmt.Fprintf(&lines, "%s\t%s\n", a, e.Name)
	}
	if len(bytes.TrimSpace(old)) == 0 {
		old = []byte(localhosts)
	}
	var b bytes.Buffer
	for line := range bytes.Lines(old) {
		b.Write(without(bytes.TrimSuffix(line, []byte("\n")), ours))
	}
	b.Write(lines.Bytes())
	return b.Bytes(), nil
}

// without takes names out of a line, and the line with its last name. Lines that have none of them stay as
// they are.
func without(line []byte, names []string) []byte {
	text, comment, commented := strings.Cut(string(line), "#")
	words := strings.Fields(text)
	is := func(w string) bool { return slices.Contains(names, strings.ToLower(w)) }
	if len(words) < 2 || !slices.ContainsFunc(words[1:], is) {
		return append(line[:len(line):len(line)], '\n')
	}
	rest := slices.DeleteFunc(words[1:], is)
	if len(rest) == 0 {
		return nil
	}
	out := words[0] + "\t" + strings.Join(rest, " ")
	if commented {
		out += " #" + comment
	}
	return []byte(out + "\n")
}
