package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/gominimal/minhost/verify/netlab"
)

// try prints "TARGET OUTCOME" for each target: NETWORK:HOST:PORT for an octet there and back,
// self:NETWORK:HOST for a server of its own on that address, name:SERVER:NAME for a lookup of A over
// UDP. OUTCOME is "ok", or the failing step, its errno and the milliseconds it took; of a lookup the
// address, or the rcode.
func try(targets []string) {
	for _, t := range targets {
		kind, rest, _ := strings.Cut(t, ":")
		var outcome string
		switch kind {
		case "self":
			network, host, _ := strings.Cut(rest, ":")
			outcome = self(network, host)
		case "name":
			i := strings.LastIndexByte(rest, ':')
			outcome = lookUp(rest[:i], rest[i+1:])
		default:
			outcome = reach(kind, rest)
		}
		fmt.Println(t, outcome)
	}
}

// reach waits long: everything takes ten times as long as on a processor, more on a busy one.
func reach(network, address string) string {
	o := netlab.Dial{Network: network, Address: address, Timeout: 30 * time.Second}.Do()
	if o.OK() {
		return "ok"
	}
	return fmt.Sprintf("%s %v %d", o.Step, strings.ReplaceAll(o.Errno.Error(), " ", "-"), o.Took.Milliseconds())
}

func self(network, host string) string {
	at := net.JoinHostPort(strings.Trim(host, "[]"), "0")
	if network == "udp" {
		c, err := net.ListenPacket("udp", at)
		if err != nil {
			return "listen " + err.Error()
		}
		defer c.Close()
		go func() {
			b := make([]byte, 100)
			for {
				n, from, err := c.ReadFrom(b)
				if err != nil {
					return
				}
				_, _ = c.WriteTo(b[:n], from) // the other end tells
			}
		}()
		return reach(network, c.LocalAddr().String())
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return "listen " + err.Error()
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			defer c.Close()
			_, _ = io.Copy(c, c) // the other end tells
		}
	}()
	return reach(network, l.Addr().String())
}

func lookUp(server, name string) string {
	q := new(dns.Msg)
	q.SetQuestion(dns.Fqdn(name), dns.TypeA)
	c := dns.Client{Timeout: 30 * time.Second}
	a, _, err := c.Exchange(q, server)
	switch {
	case err != nil:
		return "failed " + err.Error()
	case a.Rcode != dns.RcodeSuccess:
		return dns.RcodeToString[a.Rcode]
	}
	for _, rr := range a.Answer {
		if a, ok := rr.(*dns.A); ok {
			return a.A.String()
		}
	}
	return "no-data"
}
