package resolved

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
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
	// configs are patterns of its configuration: one that was told of the zone names it there.
	configs []string
	// tell is a line of shell, at most 255 octets long; ZONE, ADDRESS and PORT are filled in.
	tell string
}

const dnsmasqLines = `printf 'server=/ZONE/ADDRESS#PORT\nrebind-domain-ok=/ZONE/\n' >`

// forwarders in the order in which they are looked for.
var forwarders = []forwarder{
	{"dnsmasq", "NetworkManager", "NetworkManager's dnsmasq", []string{"/etc/NetworkManager/dnsmasq.d/*"},
		dnsmasqLines + "/etc/NetworkManager/dnsmasq.d/minhost.conf && systemctl restart NetworkManager"},
	{"dnsmasq", "libvirt", "", nil, ""}, // serves virtual machines, and nobody here asks it
	{"dnsmasq", "", "dnsmasq", []string{"/etc/dnsmasq.conf", "/etc/dnsmasq.d/*"},
		dnsmasqLines + "/etc/dnsmasq.d/minhost.conf && systemctl restart dnsmasq"},
	// internal. is nobody's to newer versions: nodefault. 127/8 counts as rebinding in many configurations.
	{"unbound", "", "unbound", []string{"/etc/unbound/unbound.conf", "/etc/unbound/unbound.conf.d/*"},
		`echo 'server: do-not-query-localhost: no domain-insecure: ZONE private-domain: ZONE local-zone: internal nodefault ` +
			`stub-zone: name: ZONE stub-addr: ADDRESS@PORT'>/etc/unbound/unbound.conf.d/minhost.conf;systemctl restart unbound`},
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

// configsOf reads the configuration of the forwarder that runs; what this user may not read is left out.
func configsOf(env systemd.Env, all []process) map[string][]string {
	w, ok := forwarderOf(all)
	if !ok {
		return nil
	}
	var texts []string
	for _, pattern := range w.configs {
		files, _ := filepath.Glob(pattern) // an error is a wrong pattern only
		for _, file := range files {
			if b, err := env.ReadFile(file); err == nil {
				texts = append(texts, string(b))
			}
		}
	}
	return map[string][]string{w.name: texts}
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

// told says whether programs find the zone through a server of this host that was told of it. A server that
// was not would ask the next one: so only one whose configuration names the zone is asked.
func (s *NamesStep) told(ctx context.Context, f Facts) (string, bool) {
	server, here := local(f)
	w, ok := forwarderOf(f.Processes)
	if !here || !ok || s.Ask == nil || !slices.ContainsFunc(f.Configs[w.name], func(text string) bool { return strings.Contains(text, s.Params.Zone) }) {
		return "", false
	}
	addrs, err := s.Ask(ctx, server, s.Params.Control)
	if err != nil || len(addrs) != 1 || addrs[0].Unmap() != s.Params.Answer {
		return "", false
	}
	return fmt.Sprintf("programs find names through %s at %s, which an admin told of %s", w.name, server, s.Params.Zone), true
}
