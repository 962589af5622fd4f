package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// peer is another name server: its program, arguments and configuration ("PORT" and "FOLDER" are
// replaced in each).
type peer struct {
	name, program, config string
	args                  []string
}

func peers() []peer {
	return []peer{
		{"nsd", "/usr/sbin/nsd", nsdConfig, []string{"-d", "-c", "FOLDER/nsd.conf"}},
		{"knot", "/usr/sbin/knotd", knotConfig, []string{"-c", "FOLDER/knot.conf"}},
		{"bind", "/usr/sbin/named", bindConfig, []string{"-g", "-4", "-n", "1", "-c", "FOLDER/bind.conf"}},
	}
}

// zoneFile is the zone of held names in the form that the others read.
func zoneFile() string {
	var b strings.Builder
	b.WriteString("$TTL 5\n@ IN SOA min.internal. . 1 5 5 15 5\n@ IN NS minhost.min.internal.\nminhost IN A 127.0.0.1\n")
	for name, addr := range held {
		if addr != "" {
			fmt.Fprintf(&b, "%s IN A %s\n", name, addr)
		}
	}
	return b.String()
}

// startPeers starts those whose program is there.
func startPeers(ctx context.Context, folder string, out io.Writer) ([]contestant, error) {
	var all []contestant
	for _, p := range peers() {
		if _, err := os.Stat(p.program); err != nil {
			fmt.Fprintf(out, "%s: no %s here, left out\n", p.name, p.program)
			continue
		}
		c, err := p.start(ctx, filepath.Join(folder, p.name))
		if err != nil {
			return all, err
		}
		all = append(all, c)
	}
	return all, nil
}

func (p peer) start(ctx context.Context, folder string) (contestant, error) {
	port, err := freePort()
	if err != nil {
		return contestant{}, err
	}
	fill := strings.NewReplacer("PORT", strconv.Itoa(int(port)), "FOLDER", folder).Replace
	if err := os.Mkdir(folder, 0o755); err != nil {
		return contestant{}, err
	}
	for name, text := range map[string]string{"min.zone": zoneFile(), p.name + ".conf": fill(p.config)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return contestant{}, err
		}
	}
	var args []string
	for _, a := range p.args {
		args = append(args, fill(a))
	}
	cmd := exec.CommandContext(ctx, p.program, args...)
	var said bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, &said, &said
	// NSD's processes end with the first one only when it is asked to end.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return contestant{}, fmt.Errorf("start %s: %w", p.name, err)
	}
	stop := func() {
		_ = cmd.Process.Signal(os.Interrupt)
		timer := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
		_ = cmd.Wait()
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))
	if err := ready(addr); err != nil {
		stop()
		return contestant{}, fmt.Errorf("%s does not answer: %w: %s", p.name, err, said.String())
	}
	return contestant{p.name, addr, stop}, nil
}

const nsdConfig = `server:
  ip-address: 127.0.0.1@PORT
  username: ""
  pidfile: ""
  zonesdir: "FOLDER"
  database: ""
  xfrdfile: ""
  zonelistfile: "FOLDER/zone.list"
  server-count: 1
  rrl-ratelimit: 0
  minimal-responses: yes
remote-control:
  control-enable: no
zone:
  name: min.internal
  zonefile: min.zone
`

const knotConfig = `server:
  listen: 127.0.0.1@PORT
  rundir: "FOLDER"
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
database:
  storage: "FOLDER"
log:
  - target: stderr
    any: error
template:
  - id: default
    storage: "FOLDER"
    zonefile-sync: -1
    journal-content: none
zone:
  - domain: min.internal
    file: min.zone
`

const bindConfig = `options {
  directory "FOLDER";
  listen-on port PORT { 127.0.0.1; };
  listen-on-v6 { none; };
  pid-file none;
  session-keyfile none;
  recursion no;
  minimal-responses yes;
  allow-transfer { none; };
  notify no;
};
controls { };
zone "min.internal" { type primary; file "FOLDER/min.zone"; check-names ignore; };
`
