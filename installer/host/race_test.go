package host_test

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

// TestReadFileIsNotRaced: somebody swaps the file for a link all the time; what the link points to
// is never read.
func TestReadFileIsNotRaced(t *testing.T) {
	d, root := fresh(t, nil)
	hosttest.Put(t, root, "/target", "theirs", 0o644)
	var stop atomic.Bool
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for !stop.Load() {
			os.WriteFile(root+"/file", []byte("mine"), 0o644)
			os.Rename(root+"/file", root+"/f")
			os.Symlink("target", root+"/link")
			os.Rename(root+"/link", root+"/f")
		}
	})
	defer swapper.Wait()
	defer stop.Store(true)
	read := 0
	for range 20000 {
		b, err := d.ReadFile("/f")
		if string(b) == "theirs" {
			t.Fatal("the link was followed")
		}
		if err == nil {
			read++
		}
	}
	if read == 0 {
		t.Error("the file was never read: the test shows nothing")
	}
}

// TestLockIsExclusive while holders remove the file as often as they release it.
func TestLockIsExclusive(t *testing.T) {
	_, root := lockRoot(t)
	var holders atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		d, err := host.OpenDisk(root, nil)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer d.Close()
			for range 150 {
				l, err := host.TakeLock(t.Context(), d, lockPath, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d holders at once", n)
				}
				holders.Add(-1)
				if err := l.Remove(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
