package boxes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/darwin/procs"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

// table is a model of processes by pid.
type table map[int]procs.Info

func (t table) Info(pid int) (procs.Info, error) {
	i, ok := t[pid]
	if !ok {
		return i, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	return i, nil
}

func (t table) Wait(ctx context.Context, pid int, start string) error {
	if ok, _ := procs.Same(t, pid, start); ok {
		return context.DeadlineExceeded
	}
	return nil
}

func proc(pid, parent, group int, start string) procs.Info {
	return procs.Info{PID: pid, Parent: parent, Group: group, Start: start}
}

func tree(t *testing.T, root, boot string, tab table, killed *[]int) *Tree {
	t.Helper()
	x := &Tree{FS: hosttest.OpenDisk(t, root, nil), Dir: "/boxes", BootID: boot, Table: tab,
		Kill: func(pid int) error { *killed = append(*killed, pid); return nil }}
	if err := x.Prepare(); err != nil {
		t.Fatal(err)
	}
	return x
}

func attach(t *testing.T, x *Tree, id string, pid int) *Leaf {
	t.Helper()
	l, err := x.Create(id)
	if err == nil {
		err = l.Move(pid)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLifetime(t *testing.T) {
	var killed []int
	tab := table{10: proc(10, 1, 10, "a"), 11: proc(11, 10, 10, "b"), 20: proc(20, 5, 5, "c"), 5: proc(5, 1, 5, "r"), 30: proc(30, 5, 30, "d")}
	root := hosttest.Root(t)
	x := tree(t, root, "boot", tab, &killed)
	web, api := attach(t, x, "web", 10), attach(t, x, "api", 20)
	if _, err := x.Create("web"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second web: %v", err)
	}
	if err := web.Move(30); !errors.Is(err, ErrOccupied) {
		t.Errorf("a second process: %v", err)
	}
	for pid, want := range map[int]string{10: "web", 11: "web", 20: "api", 5: "", 30: ""} {
		if got, err := x.LeafOf(pid); got != want || err != nil {
			t.Errorf("leaf of %d: %q %v, want %q", pid, got, err, want)
		}
	}
	if err := errors.Join(web.Kill(), api.Kill()); err != nil || len(killed) != 2 || killed[0] != -10 || killed[1] != 20 {
		t.Errorf("killed %v %v: the group of a leader, else the process alone (its group is the runner's)", killed, err)
	}
	if err := web.Remove(); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("removed with a live process: %v", err)
	}
	// Another helper of the same boot finds both; one of another boot none.
	again := tree(t, root, "boot", tab, &killed)
	if l, err := again.Open("web"); err != nil || l.ID() != web.ID() {
		t.Errorf("after a restart: %v", err)
	} else if live, err := l.Populated(); !live || err != nil {
		t.Errorf("after a restart: populated %v %v", live, err)
	}
	if names, _ := tree(t, root, "next", tab, &killed).List(); len(names) != 0 {
		t.Errorf("after a reboot: %v", names)
	}
}

// TestReusedPID: another process with the pid of a box is not that box.
func TestReusedPID(t *testing.T) {
	var killed []int
	tab := table{10: proc(10, 1, 10, "a")}
	x := tree(t, hosttest.Root(t), "boot", tab, &killed)
	web := attach(t, x, "web", 10)
	tab[10] = proc(10, 1, 10, "z")
	live, err := web.Populated()
	if live || err != nil {
		t.Errorf("populated %v %v", live, err)
	}
	if got, err := x.LeafOf(10); got != "" || err != nil {
		t.Errorf("the stranger is in %q, %v", got, err)
	}
	if err := web.Kill(); err != nil || len(killed) > 0 {
		t.Errorf("the stranger was killed: %v %v", killed, err)
	}
	if err := errors.Join(web.WaitEmpty(t.Context()), web.Remove()); err != nil {
		t.Error(err)
	}
	if _, err := x.Open("web"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}

// TestRestore: a failed attach leaves a planned box.
func TestRestore(t *testing.T) {
	var killed []int
	tab := table{10: proc(10, 1, 10, "a")}
	root := hosttest.Root(t)
	x := tree(t, root, "boot", tab, &killed)
	web := attach(t, x, "web", 10)
	if err := x.Restore(10, ""); err != nil {
		t.Fatal(err)
	}
	if pids, _ := web.Pids(); len(pids) != 0 {
		t.Errorf("pids %v", pids)
	}
	if names, _ := tree(t, root, "boot", tab, &killed).List(); len(names) != 0 {
		t.Errorf("a note stayed: %v", names)
	}
	if err := web.Move(10); err != nil {
		t.Errorf("attach again: %v", err)
	}
}
