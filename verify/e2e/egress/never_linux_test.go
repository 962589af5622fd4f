package egress

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/linux"
	"github.com/gominimal/minhost/linux/belt"
	"github.com/gominimal/minhost/verify/e2e/rig"
)

// ground is the tree of the lab, without a helper.
var ground = linux.Ground{Rel: "minhost"}

// skeleton writes the table as a boot does before the helper runs: every leaf is unknown.
func (h *host) skeleton() {
	h.Helper()
	noHelper := func(context.Context) (bool, error) { return false, nil }
	h.must(linux.TableStep{Ground: ground, Repair: noHelper}.Apply(h.ctx(), &installer.Record{}))
}

// TestNeverStarted is a boot that stopped half way, again and again: tree and belt with no table ever loaded, then
// with the table of a helper that never started. A leaf, and a process right in boxes, reach nothing; the
// host is never refused. The table alone, without a belt, refuses as much.
func TestNeverStarted(t *testing.T) {
	n := soak(t)
	rig.Bare(t)
	h := &host{t}
	tree, err := ground.Tree()
	h.must(err)
	defer tree.Close()
	h.must(tree.Ensure())
	h.must(ground.Belt((*belt.Belt).Apply))
	o := h.outside()
	for _, network := range []string{"tcp", "udp"} {
		serve(network, "127.0.0.1:8391")
		o.do(func() { serve(network, far+":8391") })
	}
	leaf := h.unknown()
	forbidden := dials(20*time.Millisecond, "127.0.0.1:8391", far+":8391", "127.0.0.1:15353", "127.0.0.1:15354")
	ask[string](leaf, order{Op: "probe", Targets: forbidden})
	hosts := probe(dials(2*time.Second, "127.0.0.1:8391", far+":8391"))
	pause := func() { time.Sleep(30 * time.Millisecond) }
	for range n {
		pause() // the belt alone, no table
		h.skeleton()
		pause() // belt and skeleton
		h.must(ground.Belt((*belt.Belt).Detach))
		pause() // the skeleton alone
		h.must(ground.Belt((*belt.Belt).Apply))
		h.run("/usr/sbin/nft", "delete", "table", "inet", "minhost")
	}
	found := ask[tally](leaf, order{Op: "halt"})
	for key, tried := range found.Tried {
		if found.Reached[key] > 0 || tried < n {
			t.Errorf("the leaf reached %s %d times of %d", key, found.Reached[key], tried)
		}
	}
	all := hosts.halt()
	for key, tried := range all.Tried {
		if tried < n || all.Reached[key] != tried {
			t.Errorf("host reached %s %d times of %d", key, all.Reached[key], tried)
		}
	}
	leaf.p.Kill()
	h.must(os.Remove(unknownDir))
	h.must(ground.Belt((*belt.Belt).Detach))
	h.must(tree.Destroy())
}

// TestIncapableKernel: a kernel that lacks what the table needs blocks the step before anything is changed, with the
// sentence and what can still be had; one that has the table is not tried.
func TestIncapableKernel(t *testing.T) {
	rig.Bare(t)
	h := &host{t}
	tree, err := ground.Tree()
	h.must(err)
	defer tree.Close()
	h.must(tree.Ensure())
	lacks := func(context.Context) ([]string, error) { return []string{"this kernel has no such part"}, nil }
	step := linux.TableStep{Ground: ground, Missing: lacks}
	o, err := step.Probe(h.ctx())
	if h.must(err); o.State != installer.Blocked || !strings.Contains(o.Detail, "no such part") || o.Loses == "" || o.Next == "" {
		t.Errorf("%+v", o)
	}
	h.must(ground.Capable(h.ctx()))
	h.skeleton()
	if o, err = step.Probe(h.ctx()); err != nil || o.State != installer.Satisfied {
		t.Errorf("%+v, %v", o, err)
	}
	h.run("/usr/sbin/nft", "delete", "table", "inet", "minhost")
	h.must(tree.Destroy())
}
