package localhosttest

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/verify/netlab"
)

// Ten thousand leases come and go, some with ports, some never ended by their helper: nothing stays.
func TestChurn(t *testing.T) {
	w := newTown(t)
	const leases, alive = 10000, 50
	home := func(n int) lease.Home {
		h := lease.Home{Leaf: uint64(100000 + n), Address: lease.Unpublished(uint16(n%alive + 1)), Own: n%3 > 0}
		if n%7 == 0 {
			h.OpenPorts = []uint16{80, 443, uint16(n)}
		}
		return h
	}
	began := time.Now()
	for n := range leases {
		if n >= alive {
			if err := w.homes.Delete(home(n - alive)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.homes.Reserve(home(n).Address); err != nil {
			t.Fatal(err)
		}
		if err := w.homes.Put(home(n)); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%v a lease", time.Since(began)/leases)
	if e := w.homes.Entries(); e["homes"] != alive || e["owners"] != alive {
		t.Errorf("with %d leases: %v", alive, e)
	}
	keep := home(leases - 1)
	keep.OpenPorts = []uint16{8080}
	if err := w.homes.Sync([]lease.Home{keep}); err != nil {
		t.Fatal(err)
	}
	if e := w.homes.Entries(); e["homes"] != 1 || e["owners"] != 1 || e["ports"] != 1 {
		t.Errorf("synchronized to one: %v", e)
	}
	if err := w.homes.Sync(nil); err != nil || len(w.homes.Entries()) != 0 {
		t.Errorf("at the end: %v, %v", w.homes.Entries(), err)
	}
}

// A late end of a lease takes nothing from who has its address by now.
func TestLateEnd(t *testing.T) {
	w := newTown(t)
	first := lease.Home{Leaf: 5, Address: address(1), Own: true}
	second := lease.Home{Leaf: 6, Address: address(1), Own: true}
	for _, err := range []error{w.homes.Put(first), w.homes.Put(second), w.homes.Delete(first)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if e := w.homes.Entries(); e["homes"] != 1 || e["owners"] != 1 {
		t.Errorf("%v", e)
	}
	if err := w.homes.Delete(second); err != nil || len(w.homes.Entries()) != 0 {
		t.Errorf("%v, %v", w.homes.Entries(), err)
	}
}

// A policy that opens ports, then others, then none: a wildcard stays one where it is open.
func TestOpenPorts(t *testing.T) {
	w := newTown(t)
	for _, c := range []struct {
		ports []uint16
		shown string // where a server on 0.0.0.0:3000 is seen from elsewhere
	}{{[]uint16{3000}, "0.0.0.0:3000"}, {[]uint16{80, 443}, "127.0.64.1:3000"}, {nil, "127.0.64.1:3000"}} {
		leaf := w.box(1, func(h *lease.Home) { h.OpenPorts = c.ports })
		a := start(t, netlab.Spawn{Leaf: leaf, UID: somebody})
		a.want("ok", "s socket tcp4")
		a.want("ok", "s bind 0.0.0.0:3000")
		a.want("ok", "s offer out-%d", len(c.ports))
		outside := start(t, netlab.Spawn{Leaf: netlab.NoLeaf})
		outside.want("ok", "s take out-%d", len(c.ports))
		outside.want(c.shown, "s name") // names are turned back in the leaf only
		if e := w.homes.Entries(); e["ports"] != len(c.ports) {
			t.Errorf("%v: %v", c.ports, e)
		}
		for _, x := range []*actor{a, outside} {
			x.want("ok", "s close")
		}
	}
}

// Every box of the range has a server on the same port, and each is found where it is, by itself and others.
func TestWholeRangeOnOnePort(t *testing.T) {
	w := newTown(t)
	const boxes = 253
	for n := range boxes {
		w.box(byte(n+1), nil)
	}
	if out := netlab.InLeaf(t, netlab.NoLeaf, "range", strconv.Itoa(boxes), filepath.Dir(w.leafs["b1"].Path())); out != "" {
		t.Error(out)
	}
}

// rangeChild goes from leaf to leaf: a socket belongs to where it was made. It prints what is wrong.
func rangeChild(args []string) int {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return 2
	}
	enter := func(box int) {
		leaf := fmt.Sprintf("%s/b%d/cgroup.procs", args[1], box)
		if err := os.WriteFile(leaf, []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
			fmt.Println(err)
		}
	}
	var servers []net.Listener
	for box := 1; box <= n; box++ {
		enter(box)
		l, err := net.Listen("tcp", []string{"0.0.0.0:3900", "127.0.0.1:3900", "[::1]:3900"}[box%3])
		if err != nil {
			fmt.Println(box, err)
			return 0
		}
		servers = append(servers, l)
		go serveNumber(l, box)
	}
	for box := 1; box <= n; box++ {
		enter(box)
		own := netip.AddrFrom4([4]byte{127, 0, 64, byte(box)}).String()
		other := box%n + 1
		for to, want := range map[string]int{"127.0.0.1": box, "::1": box, own: box, netip.AddrFrom4([4]byte{127, 0, 64, byte(other)}).String(): other} {
			c, err := net.Dial("tcp", net.JoinHostPort(to, "3900"))
			if err != nil {
				fmt.Println(box, err)
				continue
			}
			got, _ := io.ReadAll(c)
			if strings.TrimSpace(string(got)) != strconv.Itoa(want) {
				fmt.Printf("box %d, %s: answered by %s\n", box, to, got)
			}
			c.Close()
		}
	}
	for _, l := range servers {
		l.Close()
	}
	out := filepath.Dir(args[1])
	if err := os.WriteFile(filepath.Dir(out)+"/cgroup.procs", []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		fmt.Println(err)
	}
	return 0
}

func serveNumber(l net.Listener, n int) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		fmt.Fprintln(c, n)
		c.Close()
	}
}
