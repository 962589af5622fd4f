package loopback

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer/host"
)

const netstatPath = "/usr/sbin/netstat"

// Free tells whether a leased address can be given: it can be bound, and no socket of an earlier box, or
// of anybody, is bound to it.
func Free(ctx context.Context, run host.Runner, a netip.Addr) error {
	if err := Bind(a); err != nil {
		return err
	}
	r, err := run.Run(ctx, host.Command{Path: netstatPath, Args: []string{"-anf", "inet"}, Reads: true, Timeout: 5 * time.Second, Limit: 16 << 20})
	if err != nil {
		return err
	}
	if user := user(r.Stdout, a); user != "" {
		return fmt.Errorf("a socket is bound to %s: %s; look: lsof -nP -i @%s", a, user, a)
	}
	return nil
}

// user finds a socket of the address in "netstat -an": protocol, two queues, local address, and so on.
// The port follows the address behind a dot. What waits for late segments delivers nothing.
func user(text []byte, a netip.Addr) string {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 5 || !strings.HasPrefix(f[0], "tcp") && !strings.HasPrefix(f[0], "udp") || f[len(f)-1] == "TIME_WAIT" {
			continue
		}
		if at := strings.LastIndexByte(f[3], '.'); at > 0 && f[3][:at] == a.String() {
			return f[0] + " " + f[3]
		}
	}
	return ""
}
