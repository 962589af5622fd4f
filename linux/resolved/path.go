package resolved

import (
	"fmt"
	"net/netip"
	"strings"
)

// Facts are everything that decides which programs see the zone.
type Facts struct {
	ResolvConf string // content of /etc/resolv.conf
	NSSwitch   string // content of /etc/nsswitch.conf
	// NSSResolve: libnss_resolve.so.2 is installed. A hosts line that names it changes nothing
	// without the library.
	NSSResolve bool
	// Running: systemd-resolved has its name on the system bus.
	Running bool
	// Installed: it is there and could be started.
	Installed bool
	// Processes are those of other DNS servers that minhost knows.
	Processes []process
	// Configs is the configuration of the one that counts, by its name.
	Configs map[string][]string
	WSL     bool
	NixOS   bool
}

// Path is the verdict: which programs ask systemd-resolved.
type Path struct {
	// Libc: programs that look names up through glibc (browsers, curl, python, ssh).
	Libc bool
	// Direct: programs that read resolv.conf themselves (static Go programs, musl, dig).
	Direct bool
	// Cause says what keeps the others away; empty when all are there.
	Cause string
	// Leaks is the first server that is asked for names of the zone instead; "" for none.
	Leaks string
}

// Read decides. It changes nothing, and no answer of it says that the file should be rewritten:
// every one of these files has an owner that is not minhost.
func Read(f Facts) Path {
	conf := ParseResolvConf(f.ResolvConf)
	stub := f.Running && conf.Stub()
	p := Path{Direct: stub}
	var asked bool
	p.Libc, asked = walk(f, stub)
	if len(conf.Nameservers) > 0 && !loopback(conf.Nameservers[0]) && (asked || !p.Direct) {
		p.Leaks = conf.Nameservers[0]
	}
	p.Cause = cause(f, conf, p)
	return p
}

// loopback servers are on this host: what they are asked does not leave it by them alone.
func loopback(server string) bool {
	a, err := netip.ParseAddr(server)
	return err == nil && a.IsLoopback()
}

// walk follows the hosts line for a name of the zone: does glibc come to resolved before a source
// ends the lookup, and does it ask the servers of resolv.conf on the way?
func walk(f Facts, stub bool) (seen, asked bool) {
	sources, _ := ParseHosts(f.NSSwitch)
	for _, s := range sources {
		st := notFound // files, myhostname, mymachines, sss and others do not know the zone
		switch {
		case s.Name == "resolve" && f.Running && f.NSSResolve:
			return true, asked
		case s.Name == "resolve":
			st = unavail
		case s.Name == "dns" && stub:
			return true, asked
		case s.Name == "dns":
			asked = true
		case strings.HasPrefix(s.Name, "mdns"):
			st = unavail // for anything but .local
		}
		if s.Return[st] {
			return false, asked
		}
	}
	return false, asked
}

func cause(f Facts, conf ResolvConf, p Path) string {
	if p.Libc && p.Direct {
		return ""
	}
	if !f.Running {
		return "systemd-resolved does not run"
	}
	servers := "no server"
	if len(conf.Nameservers) > 0 {
		servers = strings.Join(conf.Nameservers, ", ")
	}
	by := ""
	switch {
	case f.WSL || conf.Owner == "WSL":
		by = ", written by WSL at each start"
	case conf.Owner != "":
		by = ", written by " + conf.Owner
	}
	if p.Direct {
		return "the hosts line of /etc/nsswitch.conf ends before resolve and dns"
	}
	return fmt.Sprintf("/etc/resolv.conf names %s instead of 127.0.0.53%s", printable(servers), by)
}

// printable keeps a file's text from writing to somebody's terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s[:min(len(s), 120)])
}

// String is one line: who sees the names and who does not.
func (p Path) String() string {
	yes := map[bool]string{true: "yes", false: "no"}
	s := fmt.Sprintf("programs that use glibc: %s; static Go programs, musl and dig: %s", yes[p.Libc], yes[p.Direct])
	if p.Cause != "" {
		s += " (" + p.Cause + ")"
	}
	return s
}
