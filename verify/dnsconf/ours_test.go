package main

import (
	"net"
	"strings"
	"testing"
)

// TestOurs: our answerer passes every check.
func TestOurs(t *testing.T) {
	all := checks()
	if len(all) < 69 {
		t.Errorf("%d checks", len(all))
	}
	addr, stop, err := ours(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			if err := c.run(addr); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestChecksCanFail: a server that sends every query back as a reply passes only checks that look at
// a single thing which is right in such a reply.
func TestChecksCanFail(t *testing.T) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 65535)
		for {
			n, from, err := conn.ReadFromUDP(buf)
			if err != nil {
				return
			}
			if n > 2 {
				buf[2] |= 0x80
			}
			_, _ = conn.WriteToUDP(buf[:n], from)
		}
	}()
	defer func() { conn.Close(); <-done }()
	passes := map[string]bool{}
	for _, name := range []string{"RD stays off", "no OPT gets none", "a reply to 512 octets is whole"} {
		passes[name] = true
	}
	for _, c := range checks() {
		if strings.HasPrefix(c.name, "silence to a ") {
			continue // what it sends back has the id that the check waits for, or not: no matter
		}
		if err := c.run(conn.LocalAddr().String()); (err == nil) != passes[c.name] {
			t.Errorf("%s: %v, want it to pass: %v", c.name, err, passes[c.name])
		}
	}
}
