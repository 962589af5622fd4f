package belttest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/linux/belt"
	"github.com/gominimal/minhost/verify/netlab"
)

func TestApplyTwice(t *testing.T) {
	tree := netlab.Tree(t)
	var changes []string
	b := onTree(t, tree, config(t), func(c string) error { changes = append(changes, c); return nil })
	want(t, b, installer.Absent)
	if err := b.Apply(); err != nil {
		t.Fatal(err)
	}
	want(t, b, installer.Satisfied)
	// Two more programs on kernels before 6.15.
	if ps, err := belt.Programs(config(t)); err != nil || len(changes) != len(ps) {
		t.Errorf("changes %q", changes)
	}
	var before [][]ebpf.ProgramID
	for _, hook := range hooks {
		before = append(before, ids(t, boxes(t, tree), hook))
	}
	changes = nil
	if err := b.Apply(); err != nil || len(changes) != 0 {
		t.Errorf("again: %q, %v", changes, err)
	}
	for i, hook := range hooks {
		if now := ids(t, boxes(t, tree), hook); len(now) != 1 || !slices.Equal(now, before[i]) {
			t.Errorf("%s: %v, was %v", hook, now, before[i])
		}
	}
}

// A cut between any two changes is mended by the next Apply.
func TestApplyCut(t *testing.T) {
	tree := netlab.Tree(t)
	stop := errors.New("cut")
	for n := range 3 {
		left := n
		cut := onTree(t, tree, config(t), func(string) error {
			if left == 0 {
				return stop
			}
			left--
			return nil
		})
		if err := cut.Apply(); !errors.Is(err, stop) {
			t.Fatalf("cut %d: %v", n, err)
		}
		state := installer.Drifted
		if n == 0 {
			state = installer.Absent
		}
		want(t, cut, state)
		b := onTree(t, tree, config(t), nil)
		if err := b.Apply(); err != nil {
			t.Error(err)
		}
		want(t, b, installer.Satisfied)
		if err := b.Detach(); err != nil {
			t.Error(err)
		}
		want(t, b, installer.Absent)
	}
}

func TestReplaceOldVersion(t *testing.T) {
	tree := netlab.Tree(t)
	old, b := onTree(t, tree, older(t), nil), onTree(t, tree, config(t), nil)
	if err := old.Apply(); err != nil {
		t.Fatal(err)
	}
	r := want(t, b, installer.Drifted)
	if !strings.Contains(r.Detail, "is attached, want minhost_e") {
		t.Error(r.Detail)
	}
	if err := b.Apply(); err != nil {
		t.Fatal(err)
	}
	want(t, b, installer.Satisfied)
	want(t, old, installer.Drifted)
	if err := old.Detach(); err != nil { // any version of ours is ours
		t.Error(err)
	}
	want(t, b, installer.Absent)
}

// Two belts at once drop everything: seen, and mended to one.
func TestDoubled(t *testing.T) {
	tree := netlab.Tree(t)
	fd := boxes(t, tree)
	b := onTree(t, tree, config(t), nil)
	if err := b.Apply(); err != nil {
		t.Fatal(err)
	}
	ps, err := belt.Programs(config(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range ps {
		prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: p.Name, Type: p.Type, AttachType: p.Attach, Instructions: p.Instructions, License: "GPL"})
		if err != nil {
			t.Fatal(err)
		}
		defer prog.Close()
		if err := link.RawAttachProgram(link.RawAttachProgramOptions{Target: fd, Program: prog, Attach: p.Attach, Flags: 2}); err != nil {
			t.Fatal(err)
		}
	}
	if r := want(t, b, installer.Drifted); !strings.Contains(r.Detail, "attached 2 times") {
		t.Error(r.Detail)
	}
	if err := b.Apply(); err != nil {
		t.Fatal(err)
	}
	want(t, b, installer.Satisfied)
}

// A program with our name and other instructions is not ours in effect: the kernel's sum tells.
func TestNameIsNotEnough(t *testing.T) {
	tree := netlab.Tree(t)
	b := onTree(t, tree, config(t), nil)
	ps, err := belt.Programs(config(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, hook := range hooks {
		foreign(t, boxes(t, tree), ps[i].Name, hook)
	}
	want(t, b, installer.Drifted)
	if err := b.Apply(); err != nil {
		t.Fatal(err)
	}
	want(t, b, installer.Satisfied)
}

func TestForeignProgramsStay(t *testing.T) {
	tree := netlab.Tree(t)
	fd := boxes(t, tree)
	var theirs []ebpf.ProgramID
	for _, hook := range hooks {
		theirs = append(theirs, foreign(t, fd, "sd_fw", hook))
	}
	b := onTree(t, tree, config(t), nil)
	if r := want(t, b, installer.Absent); len(r.Foreign) != 3 || !strings.HasPrefix(r.Foreign[0], "sd_fw (program ") {
		t.Errorf("foreign %q", r.Foreign)
	}
	if err := b.Apply(); err != nil {
		t.Fatal(err)
	}
	want(t, b, installer.Satisfied)
	if err := b.Detach(); err != nil {
		t.Fatal(err)
	}
	if err := b.Detach(); err != nil {
		t.Errorf("again: %v", err)
	}
	for i, hook := range hooks {
		if now := ids(t, fd, hook); !slices.Equal(now, theirs[i:i+1]) {
			t.Errorf("%s: %v, want %v", hook, now, theirs[i])
		}
	}
}

// The program that attached the belt may end; the cgroup holds it. When the cgroup goes, so do they.
func TestLivesAsLongAsTheCgroup(t *testing.T) {
	tree := netlab.Tree(t)
	netlab.InLeaf(t, netlab.NoLeaf, "apply")
	b := onTree(t, tree, config(t), nil)
	want(t, b, installer.Satisfied)
	leaf, err := tree.Create("web")
	if err != nil {
		t.Fatal(err)
	}
	d := netlab.Dial{Network: "udp", Address: netlab.Echo(t, "udp", "127.0.0.1:0", 0)}
	if o := d.From(t, leaf.FD()); o.OK() {
		t.Errorf("after the end of the loader: %v", o)
	}
	var all []ebpf.ProgramID
	for _, hook := range hooks {
		all = append(all, ids(t, boxes(t, tree), hook)...)
	}
	if err := errors.Join(leaf.Remove(), leaf.Close(), tree.Destroy()); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for _, id := range all {
		for {
			p, err := ebpf.NewProgramFromID(id)
			if errors.Is(err, fs.ErrNotExist) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			p.Close()
			if time.Now().After(deadline) {
				t.Fatalf("program %d is still loaded", id)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// Who is not root is told so, in one line each.
func TestUnprivileged(t *testing.T) {
	worn(t)
	out := netlab.Start(t, netlab.Spawn{Leaf: netlab.NoLeaf, UID: 1000}, "unprivileged").Stop()
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 2 || lines[0] != "unknown <nil>" || !strings.Contains(lines[1], "not permitted") {
		t.Errorf("%q", lines)
	}
}

// Swapping versions in place lets nothing through. The same flood sees the gap of detach and attach, so
// it would see one here.
func TestReplaceUnderTraffic(t *testing.T) {
	leaf, b := worn(t)
	c := config(t) // the same namespace: another one would let everything through
	c.Lease, c.Admit, c.Foreign = 0x00800000, 0x01000000, 0x02000000
	old := onTree(t, netlab.Tree(t), c, nil)
	run := func(swap func() error) (sent, arrived, swaps int) {
		port, count := sink(t)
		p := netlab.Start(t, netlab.Spawn{Leaf: leaf.FD()}, "flood", port, fmt.Sprint(netlab.Patience(time.Second).Milliseconds()))
		p.Line()
		ctx, cancel := context.WithTimeout(t.Context(), netlab.Patience(900*time.Millisecond))
		defer cancel()
		for ; ctx.Err() == nil; swaps++ {
			if err := swap(); err != nil {
				t.Fatal(err)
			}
		}
		return atoi(t, p.Stop()), count(), swaps
	}
	even := false
	sent, arrived, swaps := run(func() error {
		even = !even
		if even {
			return old.Apply()
		}
		return b.Apply()
	})
	told := fmt.Sprintf("%d swaps, %d datagrams tried, %d arrived", swaps, sent, arrived)
	if arrived != 0 || swaps < 10 || sent < 1000 {
		t.Error(told)
	}
	t.Log(told)
	if _, arrived, swaps := run(func() error { return errors.Join(b.Detach(), old.Detach(), b.Apply()) }); arrived == 0 {
		t.Errorf("%d gaps and none seen: this test proves nothing", swaps)
	}
}

// Approved traffic lives through a swap too.
func TestReplaceKeepsApprovedFlow(t *testing.T) {
	leaf, b := worn(t)
	c := config(t)
	c.Lease = 0x02000000 // another program with the same approve and admit bits
	old := onTree(t, netlab.Tree(t), c, nil)
	d := netlab.Dial{Network: "udp", Address: netlab.Echo(t, "udp", "127.0.0.1:0", admit)}
	marking(t, "dport", d.Address, approve)
	for range 20 {
		if err := errors.Join(old.Apply(), b.Apply()); err != nil {
			t.Fatal(err)
		}
		if o := d.From(t, leaf.FD()); !o.OK() {
			t.Fatal(o)
		}
	}
}
