package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gominimal/minhost/resolverd/zonefile"
)

// peer is a name server that can be measured.
type peer struct {
	name string
	// target is what our rate must be at least, as a multiple of its; 0 for none.
	target   float64
	programs []string // absolute paths, the first that exists is run
	port     int
	// args are the program's, with its configuration in the folder.
	args func(p peer, folder string) []string
	// files are written into the folder before it starts, name and content.
	files func(p peer, folder string) map[string]string
}

// program is the path of it, and "" when it is not there.
func (p peer) program() string {
	for _, path := range p.programs {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

func peers(self string) []peer {
	return []peer{
		{name: ours, programs: []string{self}, port: 5360,
			args: func(p peer, folder string) []string {
				return []string{answererVerb, fmt.Sprint(p.port), filepath.Join(folder, "zone")}
			},
			files: func(peer, string) map[string]string {
				return map[string]string{"zone": string(zonefile.Encode(ourZone(nameCount)))}
			}},
		{name: "nsd", target: 1.0, programs: []string{"/usr/sbin/nsd"}, port: 5361, files: nsdFiles,
			args: func(_ peer, folder string) []string {
				return []string{"-d", "-c", filepath.Join(folder, "nsd.conf")}
			}},
		{name: "knot", programs: []string{"/usr/sbin/knotd"}, port: 5362, files: knotFiles,
			args: func(_ peer, folder string) []string { return []string{"-c", filepath.Join(folder, "knot.conf")} }},
		{name: "unbound", programs: []string{"/usr/sbin/unbound"}, port: 5363, files: unboundFiles,
			args: func(_ peer, folder string) []string {
				return []string{"-d", "-c", filepath.Join(folder, "unbound.conf")}
			}},
		{name: "dnsmasq", target: 1.6, programs: []string{"/usr/sbin/dnsmasq"}, port: 5364, files: dnsmasqFiles,
			args: func(_ peer, folder string) []string {
				return []string{"-k", "-C", filepath.Join(folder, "dnsmasq.conf")}
			}},
		{name: "coredns", target: 5, programs: []string{"/usr/bin/coredns", "/usr/local/bin/coredns"}, port: 5365, files: corednsFiles,
			args: func(_ peer, folder string) []string { return []string{"-conf", filepath.Join(folder, "Corefile")} }},
	}
}

func nsdFiles(p peer, folder string) map[string]string {
	return map[string]string{"min.zone": masterZone(), "nsd.conf": fmt.Sprintf(`server:
  ip-address: 127.0.0.1@%d
  username: ""
  pidfile: ""
  zonesdir: "%[2]s"
  database: ""
  xfrdfile: ""
  zonelistfile: "%[2]s/zone.list"
  server-count: 1
  rrl-ratelimit: 0
  minimal-responses: yes
remote-control:
  control-enable: no
zone:
  name: min.internal
  zonefile: min.zone
`, p.port, folder)}
}

func knotFiles(p peer, folder string) map[string]string {
	return map[string]string{"min.zone": masterZone(), "knot.conf": fmt.Sprintf(`server:
  listen: 127.0.0.1@%d
  rundir: "%[2]s"
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
database:
  storage: "%[2]s"
log:
  - target: stderr
    any: error
template:
  - id: default
    storage: "%[2]s"
    zonefile-sync: -1
    journal-content: none
zone:
  - domain: min.internal
    file: min.zone
`, p.port, folder)}
}

func unboundFiles(p peer, folder string) map[string]string {
	var b strings.Builder
	fmt.Fprintf(&b, `server:
  interface: 127.0.0.1@%d
  num-threads: 1
  username: ""
  chroot: ""
  directory: "%[2]s"
  pidfile: ""
  use-syslog: no
  do-daemonize: no
  minimal-responses: yes
  access-control: 127.0.0.0/8 allow
  local-zone: "min.internal." static
  local-data: "min.internal. 5 IN SOA min.internal. . 1 5 5 15 5"
`, p.port, folder)
	for i := range nameCount {
		fmt.Fprintf(&b, "  local-data: \"%s.min.internal. 5 IN A %s\"\n", boxName(i), boxAddr(i))
	}
	b.WriteString("remote-control:\n  control-enable: no\n")
	return map[string]string{"unbound.conf": b.String()}
}

func dnsmasqFiles(p peer, _ string) map[string]string {
	var b strings.Builder
	fmt.Fprintf(&b, "port=%d\nlisten-address=127.0.0.1\nbind-interfaces\nno-resolv\nno-hosts\nuser=\npid-file=\nlocal=/min.internal/\nlocal-ttl=5\n", p.port)
	for i := range nameCount {
		fmt.Fprintf(&b, "host-record=%s.min.internal,%s\n", boxName(i), boxAddr(i))
	}
	return map[string]string{"dnsmasq.conf": b.String()}
}

func corednsFiles(p peer, folder string) map[string]string {
	return map[string]string{"min.zone": masterZone(), "Corefile": fmt.Sprintf("min.internal.:%d {\n  bind 127.0.0.1\n  file %s/min.zone min.internal\n}\n", p.port, folder)}
}
