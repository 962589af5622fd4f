package resolverd

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"
)

// TestZoneIsWhole: while the zone changes all the time, each reply is of one zone: the address and the
// serial that belong together. The pairs come in batches, which one zone answers.
func TestZoneIsWhole(t *testing.T) {
	r := start(t, nil)
	zones := []*Zone{textZone(t, "zone serial 1", "web 127.0.64.1"), textZone(t, "zone serial 2", "api 127.0.64.2")}
	// The server publishes the zone of the missing file once, when it starts.
	for end := time.Now().Add(patience); r.zone.Load() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no zone at all")
		}
	}
	r.zone.Store(zones[0])
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(r.host.addr))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 20000 {
			r.zone.Store(zones[i%2])
		}
	}()
	want := map[string]bool{
		"web NOERROR qr aa\nanswer web.min.internal. 5 IN A 127.0.64.1\n":                   true,
		"web NXDOMAIN qr aa\nauthority min.internal. 5 IN SOA min.internal. . 2 5 5 15 5\n": true,
		"api NOERROR qr aa\nanswer api.min.internal. 5 IN A 127.0.64.2\n":                   true,
		"api NXDOMAIN qr aa\nauthority min.internal. 5 IN SOA min.internal. . 1 5 5 15 5\n": true,
		"web NOERROR qr aa\nauthority min.internal. 5 IN SOA min.internal. . 1 5 5 15 5\n":  true,
		"api NOERROR qr aa\nauthority min.internal. 5 IN SOA min.internal. . 2 5 5 15 5\n":  true,
	}
	conn.SetDeadline(time.Now().Add(patience))
	buf := make([]byte, 512)
	for i := range 3000 {
		ask := []string{"web", "api"}[i%2]
		msg, _ := question(t, ask+".min.internal. "+[]string{"A", "AAAA", "HTTPS"}[i%3])
		binary.BigEndian.PutUint16(msg, uint16(i))
		if _, err := conn.Write(msg); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		if got := ask + " " + describe(unpack(t, buf[:n])); !want[got] {
			t.Fatalf("reply of no zone: %s", strings.TrimSpace(got))
		}
	}
	<-done
}
