package main

import (
	"io"
	"net"

	"github.com/miekg/dns"
)

// The outside world, as the guest sees it, and the guest itself (the root's 50-lab.network).
const (
	outside, outside6 = "198.51.100.1", "2001:db8:51::1"
)

// serve echoes on each address, over TCP and UDP; "names" is a DNS server for which every name is the
// outside itself. It returns only when something cannot be served.
func serve(addresses []string) error {
	failed := make(chan error)
	for _, a := range addresses {
		if a == "names" {
			for _, network := range []string{"udp", "tcp"} {
				s := &dns.Server{Addr: "[::]:53", Net: network, Handler: dns.HandlerFunc(answer)}
				go func() { failed <- s.ListenAndServe() }()
			}
			continue
		}
		go func() { failed <- echoTCP(a) }()
		go func() { failed <- echoUDP(a) }()
	}
	return <-failed
}

func echoTCP(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			_, _ = io.Copy(c, c) // the other end's matter
		}()
	}
}

func echoUDP(address string) error {
	c, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	b := make([]byte, 1500)
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return err
		}
		_, _ = c.WriteTo(b[:n], from) // an asker that is gone is no failure
	}
}

func answer(w dns.ResponseWriter, q *dns.Msg) {
	a := new(dns.Msg)
	a.SetReply(q)
	if q.Question[0].Qtype == dns.TypeA {
		if rr, err := dns.NewRR(q.Question[0].Name + " 1 IN A " + outside); err == nil {
			a.Answer = append(a.Answer, rr)
		}
	}
	_ = w.WriteMsg(a) // an asker that is gone is no failure
}
