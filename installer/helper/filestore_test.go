package helper

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/host/hosttest"
	"github.com/gominimal/minhost/installer/lease"
)

func TestFileStore(t *testing.T) {
	root := hosttest.Root(t)
	s := FileStore{FS: hosttest.OpenDisk(t, root, nil), Dir: "/leases", BootID: "boot"}
	for range 2 {
		if err := s.Prepare(); err != nil {
			t.Fatal(err)
		}
	}
	l := lease.Lease{ID: lease.NewID(), Number: 3, UID: operatorUID, State: lease.Attached,
		Policy: lease.Policy{Egress: lease.Deny, Ingress: lease.FromHost}, Since: time.Unix(1<<30, 0).UTC()}
	if err := s.Put(l); err != nil {
		t.Fatal(err)
	}
	// Beside it: a cut record, one of another boot, one under another's name, and what is no record.
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(root, "leases", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := lease.Encode(l, "boot")
	if err != nil {
		t.Fatal(err)
	}
	old, err := lease.Encode(l, "boot before")
	if err != nil {
		t.Fatal(err)
	}
	write("b0000000000000001.json", string(whole[:40]))
	write("b0000000000000002.json", string(old))
	write("b0000000000000003.json", string(whole))
	write("notes.txt", "x")
	write("notes.json", "x")
	leases, broken := s.All()
	if len(leases) != 1 || leases[0].ID != l.ID || len(broken) != 3 {
		t.Errorf("%d leases, broken %v", len(leases), broken)
	}
	if leases, broken = s.All(); len(leases) != 1 || len(broken) != 0 {
		t.Errorf("second start: %d leases, broken %v", len(leases), broken)
	}
	if _, err := os.Stat(filepath.Join(root, "leases", "notes.json")); err != nil {
		t.Errorf("what is no lease's record was taken for one: %v", err)
	}
	for range 2 {
		if err := s.Remove(l.ID); err != nil {
			t.Error(err)
		}
	}
	if leases, _ := s.All(); len(leases) != 0 {
		t.Errorf("removed, and still there: %v", leases)
	}
}

func TestFileStoreRest(t *testing.T) {
	root := hosttest.Root(t)
	s := FileStore{FS: hosttest.OpenDisk(t, root, nil), Dir: "/leases", BootID: "boot"}
	if err := s.Prepare(); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Rested(); err != nil || len(got) != 0 {
		t.Errorf("fresh: %v %v", got, err)
	}
	a, at := netip.MustParseAddr("127.0.64.9"), time.Unix(1<<30, 0).UTC()
	if err := s.Rest(map[netip.Addr]time.Time{a: at}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Rested(); err != nil || !got[a].Equal(at) {
		t.Errorf("%v %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(root, "leases", "rest"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rested(); err == nil {
		t.Error("half a file is taken")
	}
}
