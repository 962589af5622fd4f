package boxes

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/verify/netlab"
)

// onDisk puts the records of leases on a file system of their own, of 64 KiB, and starts a helper on it.
func (f *faulty) onDisk() {
	f.Helper()
	f.kill()
	records := map[string][]byte{}
	names, err := recordNames()
	f.must(err)
	for _, n := range names {
		records[n], err = os.ReadFile(filepath.Join(layout.Leases, n))
		f.must(err)
	}
	f.must(syscall.Mount("tmpfs", layout.Leases, "tmpfs", 0, "mode=700,size=64k"))
	f.Cleanup(func() {
		f.kill()
		f.must(syscall.Unmount(layout.Leases, syscall.MNT_DETACH))
		f.start()
	})
	for n, b := range records {
		f.must(os.WriteFile(filepath.Join(layout.Leases, n), b, 0o600))
	}
	f.start()
}

// again kills the helper and starts another.
func (f *faulty) again() {
	f.Helper()
	f.kill()
	f.start()
}

// cannotRecord requires that no box can be attached, that the error says why, and that nothing is left of it.
func (f *faulty) cannotRecord(why string) {
	f.Helper()
	c := f.dial(operatorUID)
	defer c.Close()
	plan, err := c.Plan(f.ctx(), planIn("late", openPolicy()))
	f.must(err)
	a := startAgent(f, netlab.Spawn{Leaf: netlab.NoLeaf, UID: operatorUID})
	err = c.Attach(f.ctx(), api.AttachIn{Lease: plan.Lease, PID: a.PID()}, nil)
	if err == nil || !strings.Contains(err.Error(), why) {
		f.Errorf("attach: %v; want %q", err, why)
	}
	f.must(c.Abandon(f.ctx(), api.AbandonIn{Lease: plan.Lease}))
	f.within(5*time.Second, "helper and kernel agree", f.agree)
	a.Kill()
}

// canRecord requires that boxes come and go.
func (f *faulty) canRecord() {
	f.Helper()
	b := f.box("late", denyPolicy())
	b.refused("tcp", openDoor)
	b.end()
	f.within(5*time.Second, "helper and kernel agree", f.agree)
}

// runFull leaves no room on the file system of /run, where records, zone and sockets are.
func (f *faulty) runFull() {
	f.Helper()
	var fs unix.Statfs_t
	f.must(unix.Statfs("/run", &fs))
	used := (fs.Blocks - fs.Bfree) * uint64(fs.Bsize)
	f.must(unix.Mount("", "/run", "", unix.MS_REMOUNT, fmt.Sprintf("size=%d", used+64<<10)))
	f.Cleanup(func() { f.must(unix.Mount("", "/run", "", unix.MS_REMOUNT, "size=50%")) })
}

// TestDiskFull: boxes that live keep what they have, through a restart too; a new one is refused with the reason;
// with room again all is as before.
func TestDiskFull(t *testing.T) {
	for name, limit := range map[string]func(*faulty){"of the records": (*faulty).onDisk, "of all": (*faulty).runFull} {
		t.Run(name, func(t *testing.T) {
			f := newFaulty(t)
			b := f.bystanders()
			limit(f)
			filler := filepath.Join(layout.Leases, "filler")
			err := os.WriteFile(filler, bytes.Repeat([]byte{1}, 1<<20), 0o600)
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("the disk is not full: %v", err)
			}
			for range 2 {
				f.cannotRecord("no space left on device")
				c := f.dial(operatorUID)
				err := c.Update(f.ctx(), api.UpdateIn{Lease: b.keep.plan.Lease, Secret: b.keep.plan.Secret, Policy: new(openPolicy())})
				if err == nil {
					t.Error("an update that cannot be recorded was taken")
				}
				b.keep.reaches("tcp", openDoor)
				b.keep.refused("tcp", closedDoor)
				b.deny.refused("tcp", openDoor)
				f.again()
			}
			f.must(os.Remove(filler))
			f.within(10*time.Second, "the zone is published", f.agree)
			f.canRecord()
			b.keep.whole()
		})
	}
}

// TestDiskReadOnly: the same where nothing can be written; a box that ends stays owed until something can be.
func TestDiskReadOnly(t *testing.T) {
	f := newFaulty(t)
	b := f.bystanders()
	f.onDisk()
	remount := func(flags uintptr) {
		t.Helper()
		f.must(syscall.Mount("", layout.Leases, "", syscall.MS_REMOUNT|flags, "size=64k"))
	}
	remount(syscall.MS_RDONLY)
	for range 2 {
		f.cannotRecord("read-only file system")
		b.keep.reaches("tcp", openDoor)
		b.keep.refused("tcp", closedDoor)
		b.deny.refused("tcp", openDoor)
		f.again()
	}
	_, err := f.dial(operatorUID).Teardown(f.ctx(), api.TeardownIn{Lease: b.deny.plan.Lease, Secret: b.deny.plan.Secret, Kill: true})
	if err == nil {
		t.Error("a teardown whose record stays was called done")
	}
	remount(0)
	f.within(10*time.Second, "the box that ended is gone, its record too", f.agree)
	f.canRecord()
	b.keep.whole()
}

// TestRecordsDamaged: the helper starts, says which record is bad, and keeps every other box. One whose record is
// lost reaches nothing, is named by verify, and hinders nobody.
func TestRecordsDamaged(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"cut":           func(b []byte) []byte { return b[:len(b)/2] },
		"empty":         func([]byte) []byte { return nil },
		"a flipped bit": func(b []byte) []byte { b[len(b)*2/3] ^= 4; return b },
		"zeros":         func(b []byte) []byte { return make([]byte, len(b)) },
		"no file":       nil,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFaulty(t)
			b := f.bystanders()
			lost := f.box("lost", openPolicy())
			lost.reaches("tcp", openDoor)
			f.kill()
			path := filepath.Join(layout.Leases, lost.plan.Lease+".json")
			if damage == nil {
				f.must(os.Remove(path))
			} else {
				text, err := os.ReadFile(path)
				f.must(err)
				f.must(os.WriteFile(path, damage(text), 0o600))
				f.must(os.WriteFile(filepath.Join(layout.Leases, "rest"), damage([]byte(`{"127.0.64.9":"2026-11-30T12:00:00Z"}`)), 0o600))
			}
			f.start()
			if damage != nil {
				log, err := os.ReadFile(f.log)
				f.must(err)
				if !bytes.Contains(log, []byte("lease record")) || !bytes.Contains(log, []byte(lost.plan.Lease)) {
					t.Errorf("the helper does not say which record is bad:\n%s", log)
				}
			}
			lost.refused("tcp", openDoor)
			b.keep.whole()
			b.deny.refused("tcp", openDoor)
			out, err := f.dial(0).Verify(f.ctx())
			f.must(err)
			named := false
			for _, c := range out.Checks {
				named = named || c.State == api.CheckStateFailed && strings.Contains(c.Detail, lost.plan.Lease)
			}
			if !named {
				t.Errorf("verify does not name the leaf: %+v", out.Checks)
			}
			again := f.box("lost", denyPolicy()) // the name is free
			again.end()
			lost.Kill()
			f.again()
			f.within(10*time.Second, "its leaf is gone", f.agree)
		})
	}
}
