package boxes

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
)

// lives is the number of cycles, and how many at a time.
const (
	lives    = 2000
	together = 8
)

// TestCounts: after thousands of lives, some broken off at every point, the counters of the helper
// fit and nothing is left, in the kernel or in the helper.
func TestCounts(t *testing.T) {
	h := newHost(t)
	before, err := h.status()
	h.must(err)
	h.lives(lives / 10) // what a helper keeps for good it has now
	h.clean()
	h.settle() // its last connection is closed
	small := usageOf(t, before.PID)
	start := time.Now()
	h.lives(lives)
	t.Logf("%d lives in %v", lives, time.Since(start))
	h.clean()
	after, err := h.status()
	h.must(err)
	if after.PID != before.PID {
		t.Fatalf("the helper was %d, is %d: it died", before.PID, after.PID)
	}
	plans, attaches := after.Plans-before.Plans, after.Attaches-before.Attaches
	abandons, teardowns := after.Abandons-before.Abandons, after.Teardowns-before.Teardowns
	t.Logf("%d plans, %d attaches, %d abandons, %d teardowns", plans, attaches, abandons, teardowns)
	if plans != attaches+abandons || attaches != teardowns || after.Leases != 0 {
		t.Errorf("%d plans, %d attaches, %d abandons, %d teardowns, %d leases; want plans = attaches + abandons, attaches = teardowns",
			plans, attaches, abandons, teardowns, after.Leases)
	}
	if plans < lives/2 || attaches < lives/3 || abandons < lives/5 {
		t.Error("too few lives came far enough to count")
	}
	h.within(2*time.Second, "the helper holds what it held before", func() error {
		large := usageOf(t, before.PID)
		if large.descriptors > small.descriptors || large.threads > small.threads+8 || large.resident > small.resident+16<<20 {
			return fmt.Errorf("%+v, then %+v", small, large)
		}
		return nil
	})
	h.verified()
}

// lives runs that many cycles of all kinds, some at a time.
func (h *host) lives(n int) {
	h.Helper()
	kinds := slices.Sorted(maps.Keys(cycles))
	var next atomic.Int64
	var work sync.WaitGroup
	for range together {
		work.Go(func() {
			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
				kind := kinds[i%len(kinds)]
				name := ""
				if i/len(kinds)%2 == 0 {
					name = fmt.Sprintf("life-%d", i)
				}
				if err := h.live(name, cycles[kind]); err != nil {
					h.Errorf("life %d, %s: %v", i, kind, err)
				}
			}
		})
	}
	work.Wait()
}

// usage is what a process holds.
type usage struct{ descriptors, threads, resident int }

func usageOf(t testing.TB, pid int) (u usage) {
	t.Helper()
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	u.descriptors = len(fds)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(status) {
		f := strings.Fields(string(line))
		switch f[0] {
		case "Threads:":
			u.threads, _ = strconv.Atoi(f[1])
		case "VmRSS:":
			u.resident, _ = strconv.Atoi(f[1])
			u.resident <<= 10
		}
	}
	return u
}

// agree compares what the helper lists with the kernel, the records and the zone.
func (h *host) agree() error {
	leases, err := h.leases()
	if err != nil {
		return err
	}
	var ids, attached, names []string
	for _, l := range leases {
		ids = append(ids, l.Lease)
		if l.State != api.LeaseStateAttached {
			return fmt.Errorf("lease %s is %s", l.Lease, l.State)
		}
		attached = append(attached, l.Lease)
		if l.Name != "" {
			names = append(names, l.Name)
		}
	}
	slices.Sort(ids)
	slices.Sort(attached)
	slices.Sort(names)
	leaves, err := leafNames()
	if err != nil {
		return err
	}
	sets, err := elements()
	if err != nil {
		return err
	}
	zone, err := zoneNames()
	if err != nil {
		return err
	}
	slices.Sort(zone)
	entries, err := recordNames()
	if err != nil {
		return err
	}
	var errs []error
	if !slices.Equal(ids, leaves) {
		errs = append(errs, fmt.Errorf("leases %v, leaves %v", ids, leaves))
	}
	if sets["policyof"] != len(attached) {
		errs = append(errs, fmt.Errorf("%d attached leases, %d leaves in the table", len(attached), sets["policyof"]))
	}
	if !slices.Equal(names, zone) {
		errs = append(errs, fmt.Errorf("names %v, zone %v", names, zone))
	}
	if len(entries) != len(attached) {
		errs = append(errs, fmt.Errorf("%d attached leases, records %v", len(attached), entries))
	}
	return errors.Join(errs...)
}
