package boxes

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/verify/netlab"
)

// TestFlushAmongLives: the table is flushed again and again while boxes come and go. What is mended
// holds exactly the boxes of then: no verdict of one that went, and none lost of one that came.
func TestFlushAmongLives(t *testing.T) {
	h := newHost(t)
	netlab.Echo(h, "tcp", "127.0.0.1:8099", 0)
	b := h.box("mended", rules("127.0.0.1 8099 tcp"))
	var over atomic.Bool
	var work sync.WaitGroup
	for i := range 6 {
		work.Go(func() {
			for j := 0; !over.Load(); j++ {
				// A table that is flushed five times while it is written is an error of the call.
				err := h.live(fmt.Sprintf("m%d-%d", i, j), cycles["update, join, teardown"])
				if internal := new(api.Internal); err != nil && !errors.As(err, &internal) {
					t.Errorf("life among flushes: %v", err)
				}
			}
		})
	}
	for range 100 {
		exec.Command("/usr/sbin/nft", "flush", "ruleset").Run()
		time.Sleep(rand.N(60 * time.Millisecond))
	}
	over.Store(true)
	work.Wait()
	h.within(2*time.Second, "table and leases agree", h.agree)
	h.within(time.Second, "allowed traffic is back", func() error {
		if o := b.dial("tcp", "127.0.0.1:8099"); !o.OK() {
			return o.Errno
		}
		return nil
	})
	h.verified()
}

// TestFlushDuringAttach: a box that is attached while the table is mended has its verdict.
func TestFlushDuringAttach(t *testing.T) {
	h := newHost(t)
	netlab.Echo(h, "tcp", "127.0.0.1:8099", 0)
	for round := range 30 {
		c, err := h.tryDial(operatorUID)
		h.must(err)
		plan, err := c.Plan(h.ctx(), planIn("", rules("127.0.0.1 8099 tcp")))
		h.must(err)
		b := &box{h: h, c: c, plan: plan, agent: startAgent(h, netlab.Spawn{Leaf: netlab.NoLeaf, UID: operatorUID})}
		flushed := make(chan struct{})
		go func() {
			defer close(flushed)
			exec.Command("/usr/sbin/nft", "flush", "ruleset").Run()
		}()
		time.Sleep(rand.N(80 * time.Millisecond))
		h.must(c.Attach(h.ctx(), api.AttachIn{Lease: plan.Lease, PID: b.PID()}, nil))
		<-flushed
		h.within(2*time.Second, fmt.Sprintf("round %d: allowed traffic flows", round), func() error {
			if o := b.dial("tcp", "127.0.0.1:8099"); !o.OK() {
				return o.Errno
			}
			return nil
		})
		b.end()
		b.Kill()
		c.Close()
	}
	h.within(2*time.Second, "table and leases agree", h.agree)
}
