package boxes

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
)

// TestCallsLeaveNothing: descriptors, threads and memory of the helper are the same after many calls as after some.
// MINHOST_CALLS makes more.
func TestCallsLeaveNothing(t *testing.T) {
	h := newHost(t)
	calls := 10000
	if n, err := strconv.Atoi(os.Getenv("MINHOST_CALLS")); err == nil {
		calls = n
	}
	b := h.box("called", rules("127.0.0.1 8099 tcp"))
	pid := h.waitHelper()
	h.calls(b, calls/5) // what a helper keeps for good it has now
	h.settle()
	before := usageOf(t, pid)
	start := time.Now()
	h.calls(b, calls)
	t.Logf("%d calls in %v", calls, time.Since(start))
	h.within(10*time.Second, "the helper holds what it held before", func() error {
		after := usageOf(t, pid)
		// Memory goes up and down with the collector; what leaks a hundred octets a call is seen in 100,000.
		if after.descriptors > before.descriptors || after.threads > before.threads+4 || after.resident > before.resident+8<<20 {
			return fmt.Errorf("%+v, then %+v", before, after)
		}
		return nil
	})
	t.Logf("%+v, then %+v", before, usageOf(t, pid))
	if now := h.waitHelper(); now != pid {
		t.Errorf("the helper was %d, is %d", pid, now)
	}
}

// calls makes so many calls of all cheap kinds, good and bad, by three accounts, on connections that come and go.
func (h *host) calls(b *box, n int) {
	h.Helper()
	var work sync.WaitGroup
	for _, uid := range []uint32{operatorUID, memberUID, 0} {
		work.Go(func() {
			for left := n / 3; left > 0; {
				c, err := h.tryDial(uid)
				if err != nil {
					h.Error(err)
					return
				}
				for i := range min(left, 500) {
					ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
					switch i % 5 {
					case 0:
						_, err = c.List(ctx)
					case 1:
						_, err = c.Status(ctx)
					case 2:
						_, err = c.Explain(ctx, api.ExplainIn{Box: b.plan.Name, Destination: "192.0.2.7:443"})
					case 3: // no lease of this name, or not this secret
						c.Update(ctx, api.UpdateIn{Lease: b.plan.Lease, Secret: "guess", Policy: new(openPolicy())})
					case 4:
						c.Attach(ctx, api.AttachIn{Lease: b.plan.Lease, PID: 1 << 22}, nil)
					}
					cancel()
					if err != nil && uid != memberUID {
						h.Errorf("call %d of uid %d: %v", i, uid, err)
						return
					}
				}
				left -= 500
				c.Close()
			}
		})
	}
	work.Wait()
}
