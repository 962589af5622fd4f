package helper

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// fakeRunners are places of runners in a world; the cgroup of an account has its number.
type fakeRunners struct {
	w     *world
	fail  error
	made  map[uint32]bool
	moved map[int]uint32
}

func (f *fakeRunners) Prepare(_ context.Context, uid uint32) (string, error) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.made[uid] = true
	return fmt.Sprintf("/node/%d", uid), f.fail
}

func (f *fakeRunners) Move(uid uint32, pid int) error {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if f.w.procs[pid].pinned == 0 {
		return errors.New("the number is not held")
	}
	f.moved[pid] = uid
	return nil
}

func (f *fakeRunners) Accounts() (map[uint64]uint32, error) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	out := map[uint64]uint32{}
	for uid := range f.made {
		out[uint64(uid)] = uid
	}
	return out, nil
}

// places says how many processes were moved, and whether one was into the place of an account.
func (f *fakeRunners) places(pid int, uid uint32) (n int, there bool) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	return len(f.moved), f.moved[pid] == uid
}

// countedTable has counted for the first operator's runners.
type countedTable struct{ fakeTable }

func (t countedTable) Traffic(ctx context.Context) (lease.Planes, error) {
	p, err := t.fakeTable.Traffic(ctx)
	p.Runners = map[uint64]lease.Traffic{operatorUID: {SentPackets: 3}}
	return p, err
}

// TestCount: who asks is moved, into the place of its own account, and sees what its account's runners sent; root
// sees all of them.
func TestCount(t *testing.T) {
	f := &fakeRunners{made: map[uint32]bool{}, moved: map[int]uint32{}}
	r := newRig(t, func(c *Config) { f.w = c.Tree.(*world); c.Runners, c.Table = f, countedTable{fakeTable{f.w}} })
	w, other, root := r.dial(operatorUID, 10), r.dial(otherUID, 11), r.dial(0, 12)
	var out api.CountOut
	for range 2 {
		if err := w.call("Count", api.CountIn{}, &out); err != nil || out.Group != fmt.Sprintf("/node/%d", operatorUID) {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	if n, there := f.places(10, operatorUID); n != 1 || !there {
		t.Errorf("%d moved, %t", n, there)
	}
	r.w.mu.Lock()
	if r.w.procs[10].pinned != 0 {
		t.Error("its number is pinned for ever")
	}
	r.w.mu.Unlock()
	if err := other.call("Count", api.CountIn{}, nil); err != nil {
		t.Error(err)
	}
	for who, c := range map[*wire]map[int]int{w: {operatorUID: 3}, other: {otherUID: 0}, root: {operatorUID: 3, otherUID: 0}} {
		var s api.StatusOut
		if err := who.call("Status", api.StatusIn{}, &s); err != nil {
			t.Fatal(err)
		}
		got := map[int]int{}
		for _, x := range s.Traffic {
			if x.Plane == "runner" {
				got[x.UID] = x.SentPackets
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c) {
			t.Errorf("sees %v, want %v", got, c)
		}
	}
}

// TestCountFails: a process that ended is not moved, nor one where the table cannot count, nor any on a host that has
// no places.
func TestCountFails(t *testing.T) {
	f := &fakeRunners{made: map[uint32]bool{}, moved: map[int]uint32{}, fail: errors.New("no table")}
	r := newRig(t, func(c *Config) { f.w = c.Tree.(*world); c.Runners = f })
	w := r.dial(operatorUID, 10)
	fails := func(want string) {
		t.Helper()
		err := w.call("Count", api.CountIn{}, nil)
		if n, _ := f.places(10, 0); shortName(err) != want || n != 0 {
			t.Errorf("%v, %d moved; want %s", err, n, want)
		}
	}
	fails("Internal")
	r.w.mu.Lock()
	f.fail = nil
	delete(r.w.procs, 10)
	r.w.mu.Unlock()
	fails("NotAllowed")
	if err := newRig(t).dial(operatorUID, 10).call("Count", api.CountIn{}, nil); shortName(err) != "NotSupported" {
		t.Error(err)
	}
}

// TestCountInDoubt: who has ended since the call began, or has come into a box, is not moved.
func TestCountInDoubt(t *testing.T) {
	for want, change := range map[string]func(p *fakeProc){
		"NoSuchProcess": func(p *fakeProc) { p.dead = true },
		"NotAllowed":    func(p *fakeProc) { p.group = "b0000000000000000" },
	} {
		f := &fakeRunners{made: map[uint32]bool{}, moved: map[int]uint32{}}
		r := newRig(t, func(c *Config) { f.w = c.Tree.(*world); c.Runners = f })
		w := r.dial(operatorUID, 10)
		r.w.setHook(func(at string) error {
			if at == "open" {
				r.w.change(r.w.procs[10], change)
			}
			return nil
		})
		err := w.call("Count", api.CountIn{}, nil)
		if n, _ := f.places(10, 0); shortName(err) != want || n != 0 {
			t.Errorf("%v, %d moved; want %s", err, n, want)
		}
	}
}
