package resolved

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/gominimal/minhost/linux/systemd"
)

// forwarder is a DNS server that can send one domain elsewhere, and how an admin tells it to. minhost does
// not: its configuration has an owner, and restarting it is felt by every lookup of the host.
type forwarder struct {
	process string // its name in /proc/PID/comm
	text    string // in its command line; tells two owners of one program apart
	name    string
	tell    string // a line of shell; ZONE, ADDRESS and PORT are filled in
}

const dnsmasqLines = `printf 'server=/ZONE/ADDRESS#PORT\nrebind-domain-ok=/ZONE/\n' >`

// forwarders in the order in which they are looked for.
var forwarders = []forwarder{
	{"dnsmasq", "NetworkManager", "NetworkManager's dnsmasq", dnsmasqLines + "/etc/NetworkManager/dnsmasq.d/minhost.conf && systemctl restart NetworkManager"},
	{"dnsmasq", "libvirt", "", ""}, // serves virtual machines, and nobody here asks it
	{"dnsmasq", "", "dnsmasq", dnsmasqLines + "/etc/dnsmasq.d/minhost.conf && systemctl restart dnsmasq"},
	// internal. is nobody's to unbound 1.20 and later: nodefault. 127/8 counts as rebinding in many configurations.
	{"unbound", "", "unbound", `printf 'server:\n do-not-query-localhost: no\n domain-insecure: "ZONE"\n private-domain: "ZONE"\n local-zone: "internal." nodefault\nstub-zone:\n name: "ZONE."\n stub-addr: ADDRESS@PORT\n' >/etc/unbound/unbound.conf.d/minhost.conf && systemctl restart unbound`},
}

// process is one that may serve DNS on this host.
type process struct{ comm, cmdline string }

// forwarderOf finds the first that is known.
func forwarderOf(all []process) (forwarder, bool) {
	for _, p := range all {
		for _, f := range forwarders {
			if p.comm == f.process && strings.Contains(p.cmdline, f.text) {
				if f.name != "" {
					return f, true
				}
				break
			}
		}
	}
	return forwarder{}, false
}

// dnsProcesses reads the processes of this host that have such a name. Everybody may, unless /proc is
// mounted with hidepid; then none is seen.
func dnsProcesses(env systemd.Env) []process {
	var all []process
	files, _ := filepath.Glob("/proc/[0-9]*/comm") // an error is a wrong pattern only
	for _, file := range files {
		b, err := env.ReadFile(file)
		comm := strings.TrimSpace(string(b))
		if err != nil || !known(comm) {
			continue // gone meanwhile
		}
		cmdline, _ := env.ReadFile(filepath.Dir(file) + "/cmdline")
		all = append(all, process{comm, strings.ReplaceAll(string(cmdline), "\x00", " ")})
	}
	return all
}

func known(comm string) bool {
	for _, f := range forwarders {
		if f.process == comm {
			return true
		}
	}
	return false
}

// command is what an admin types.
func (f forwarder) command(p Params) string {
	r := strings.NewReplacer("ZONE", p.Zone, "ADDRESS", p.Answerer.Addr().String(), "PORT", fmt.Sprint(p.Answerer.Port()))
	return r.Replace(f.tell)
}

// local is the first server of resolv.conf when it is on this host and not systemd-resolved's.
func local(f Facts) (netip.Addr, bool) {
	conf := ParseResolvConf(f.ResolvConf)
	if len(conf.Nameservers) == 0 || conf.Stub() {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(conf.Nameservers[0])
	return a, err == nil && a.IsLoopback()
}

// without says what stands between programs and the answerer on a host where they do not ask
// systemd-resolved, and what an admin may type.
func (s *NamesStep) without(f Facts, p Path) (detail, next string) {
	const no = "no program would ask the answerer: "
	_, here := local(f)
	if w, ok := forwarderOf(f.Processes); ok && here {
		return fmt.Sprintf("%s%s runs, and is not told of %s", no, w.name, s.Params.Zone), w.command(s.Params)
	}
	if !f.Running && f.Installed {
		return no + p.Cause, "systemctl enable --now systemd-resolved.service"
	}
	if f.Running {
		return no + p.Cause, s.dig()
	}
	return no + p.Cause + "; install it, or a server of your own with the line server=/" + s.Params.Zone + "/" + s.Params.Answerer.Addr().String() + "#" +
		fmt.Sprint(s.Params.Answerer.Port()) + " (dnsmasq)", s.dig()
}

// askWait bounds a question to a server of this host.
const askWait = 2 * time.Second

// AskLocal asks a DNS server on port 53 of an address of this host.
func AskLocal(ctx context.Context, server netip.Addr, name string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, netip.AddrPortFrom(server, 53).String())
	}}
	return r.LookupNetIP(ctx, "ip4", name+".")
}

// told says whether programs find the zone through a server of this host that was told of it. Only a server
// on this host is asked: a name of the zone must not leave it.
func (s *NamesStep) told(ctx context.Context, f Facts) (string, bool) {
	server, here := local(f)
	if !here || s.Ask == nil {
		return "", false
	}
	addrs, err := s.Ask(ctx, server, s.Params.Control)
	if err != nil || len(addrs) != 1 || addrs[0].Unmap() != s.Params.Answer {
		return "", false
	}
	name := "the server"
	if w, ok := forwarderOf(f.Processes); ok {
		name = w.name
	}
	return fmt.Sprintf("programs find names through %s at %s, which an admin told of %s", name, server, s.Params.Zone), true
}
