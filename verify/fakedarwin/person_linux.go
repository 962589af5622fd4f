package fakedarwin

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/miekg/dns"
)

// person answers for the programs that the script for a person with a Mac looks with; minhost calls none
// of them.
func (m *Mac) person(c Call) Answer {
	switch c.Name {
	case "uname":
		return Answer{Stdout: "Darwin\n"}
	case "codesign":
		return Answer{Stderr: c.Args[len(c.Args)-1] + ": Signature=adhoc\n"}
	case "xattr", "profiles", "ps", "ping":
		return Answer{}
	case "lsof":
		return lsof(c)
	case "stat":
		return m.stat(c)
	case "dig":
		return dig(c)
	case "curl":
		return m.curl(c)
	case "open":
		return m.open(c)
	}
	return fail(127, "%s: no such program in the model", c.Name)
}

// lsof lists the sockets of a port: "-nP -iUDP:15353 -iTCP:15353".
func lsof(c Call) Answer {
	_, port, _ := strings.Cut(c.Args[len(c.Args)-1], ":")
	out := "COMMAND PID USER FD TYPE NAME\n"
	for line := range strings.Lines(netstat().Stdout) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasSuffix(f[3], "."+port) {
			out += "minhost 1 nobody 3u IPv4 " + strings.TrimSuffix(f[3], "."+port) + ":" + port + "\n"
		}
	}
	return Answer{Stdout: out}
}

// stat knows "-f %i PATH", in which GNU's would print something else.
func (m *Mac) stat(c Call) Answer {
	if len(c.Args) != 3 || c.Args[0] != "-f" || c.Args[1] != "%i" {
		return fail(1, "stat: usage")
	}
	fi, err := os.Stat(filepath.Join(m.Root, c.Args[2]))
	if err != nil {
		return fail(1, "stat: %v", err)
	}
	return Answer{Stdout: fmt.Sprintln(fi.Sys().(*syscall.Stat_t).Ino)}
}

// dig knows "+short -p PORT @SERVER NAME", and whatever is before it.
func dig(c Call) Answer {
	n := len(c.Args)
	if n < 4 || c.Args[n-4] != "-p" {
		return fail(1, "dig: usage")
	}
	q := new(dns.Msg).SetQuestion(dns.Fqdn(c.Args[n-1]), dns.TypeA)
	reply, _, err := (&dns.Client{Timeout: time.Second}).Exchange(q, net.JoinHostPort(strings.TrimPrefix(c.Args[n-2], "@"), c.Args[n-3]))
	if err != nil {
		return fail(9, ";; %v", err)
	}
	var out strings.Builder
	for _, rr := range reply.Answer {
		if a, is := rr.(*dns.A); is {
			fmt.Fprintln(&out, a.A)
		}
	}
	return Answer{Stdout: out.String()}
}

// open is a browser that looks up what it shall show.
func (m *Mac) open(c Call) Answer {
	for _, a := range c.Args {
		if u, err := url.Parse(a); err == nil && u.Host != "" {
			m.LookupFresh(u.Hostname())
		}
	}
	return Answer{}
}

// curl gets a page, whose host the model's resolver looks up.
func (m *Mac) curl(c Call) Answer {
	dial := func(ctx context.Context, network, at string) (net.Conn, error) {
		name, port, err := net.SplitHostPort(at)
		if err != nil {
			return nil, err
		}
		addr := m.Lookup(name)
		if !addr.IsValid() {
			return nil, fmt.Errorf("could not resolve host: %s", name)
		}
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(addr.String(), port))
	}
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	r, err := client.Get(c.Args[len(c.Args)-1])
	if err != nil {
		return fail(7, "curl: %v", err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err != nil {
		return fail(18, "curl: %v", err)
	}
	return Answer{Stdout: string(b)}
}
