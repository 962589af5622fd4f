package belttest

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/netlab"
)

// TestFit: on kernels since 5.15 a namespace in a box is left alone, whichever way.
func TestFit(t *testing.T) {
	if c := config(t); c.EveryPacket || c.EveryOption {
		t.Errorf("this kernel lacks bpf_get_netns_cookie: %+v", c)
	}
}

// TestEveryNamespace is what a kernel without the helper gets: the same refusals, and no loopback in a
// namespace of the box's own.
func TestEveryNamespace(t *testing.T) {
	c := config(t)
	c.EveryPacket, c.EveryOption, c.MarkForeign, c.NetnsCookie = true, true, false, 0
	tree := netlab.Tree(t)
	if err := onTree(t, tree, c, nil).Apply(); err != nil {
		t.Fatal(err)
	}
	leaf := netlab.Leaf(t, "web")
	for _, e := range everywhere {
		at := netlab.Echo(t, e.network, e.address, 0)
		d := netlab.Dial{Network: e.network, Address: at, Timeout: 200 * time.Millisecond}
		if o := d.From(t, netlab.NoLeaf); !o.OK() {
			t.Errorf("outside, %s: %v", at, o)
		}
		if o := d.From(t, leaf.FD()); o.OK() {
			t.Errorf("leaf, %s: %v", at, o)
		}
	}
	out := netlab.Start(t, netlab.Spawn{Leaf: leaf.FD(), Cloneflags: syscall.CLONE_NEWNET}, "inner").Stop()
	if strings.Contains(out, "0\n0\n") {
		t.Errorf("a namespace in the box: %q", out)
	}
}

// TestMarkForeign is what kernels before 6.15 get: the same refusals, and a namespace of the box's own
// keeps its loopback.
func TestMarkForeign(t *testing.T) {
	c := config(t)
	c.MarkForeign = true
	tree := netlab.Tree(t)
	if err := onTree(t, tree, c, nil).Apply(); err != nil {
		t.Fatal(err)
	}
	leaf := netlab.Leaf(t, "web")
	for _, e := range everywhere {
		at := netlab.Echo(t, e.network, e.address, 0)
		d := netlab.Dial{Network: e.network, Address: at, Timeout: 200 * time.Millisecond}
		if o := d.From(t, netlab.NoLeaf); !o.OK() {
			t.Errorf("outside, %s: %v", at, o)
		}
		if o := d.From(t, leaf.FD()); o.OK() {
			t.Errorf("leaf, %s: %v", at, o)
		}
	}
	out := netlab.Start(t, netlab.Spawn{Leaf: leaf.FD(), Cloneflags: syscall.CLONE_NEWNET}, "inner").Stop()
	if want := strings.Repeat("0\n", len(everywhere)+2); out != want {
		t.Errorf("a namespace in the box: %q", out)
	}
}
