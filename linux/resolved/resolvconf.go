package resolved

import (
	"net/netip"
	"slices"
	"strings"
)

// wslTunnel is the DNS address of WSL 2 with dnsTunneling: Windows answers behind it.
const wslTunnel = "10.255.255.254"

// ResolvConf is what minhost reads of resolv.conf(5).
type ResolvConf struct {
	// Nameservers in order, at most three: more are ignored by every libc.
	Nameservers []string
	// Owner is who writes the file, as its comments say: "systemd-resolved", "NetworkManager",
	// "WSL", "a VPN client"; "" when they do not.
	Owner string
}

// ParseResolvConf reads a resolv.conf. Lines that start with # or ; are comments.
func ParseResolvConf(text string) ResolvConf {
	var r ResolvConf
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			if r.Owner == "" {
				r.Owner = ownerIn(line)
			}
			continue
		}
		f := strings.Fields(line)
		if len(f) >= 2 && f[0] == "nameserver" && len(r.Nameservers) < 3 {
			r.Nameservers = append(r.Nameservers, f[1])
		}
	}
	if r.Owner == "" && slices.Contains(r.Nameservers, wslTunnel) {
		r.Owner = "WSL"
	}
	return r
}

func ownerIn(comment string) string {
	comment = strings.ToLower(comment)
	for _, o := range []struct{ word, owner string }{
		{"systemd-resolved", "systemd-resolved"}, {"networkmanager", "NetworkManager"}, {"wsl", "WSL"},
		{"vpn", "a VPN client"}, {"tailscale", "Tailscale"}, {"by resolvconf", "resolvconf"}, {"dhclient", "dhclient"}, {"dhcpcd", "dhcpcd"},
	} {
		if strings.Contains(comment, o.word) {
			return o.owner
		}
	}
	return ""
}

// Stub says whether every server is systemd-resolved's own listener. One other server is enough to
// lose: musl asks all at once and takes the first answer, glibc the next one after a failure.
func (r ResolvConf) Stub() bool {
	for _, s := range r.Nameservers {
		a, err := netip.ParseAddr(s)
		if err != nil || (a != netip.AddrFrom4([4]byte{127, 0, 0, 53}) && a != netip.AddrFrom4([4]byte{127, 0, 0, 54})) {
			return false
		}
	}
	return len(r.Nameservers) > 0
}
