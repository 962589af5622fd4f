package helper

import (
	"errors"
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

// expectant is a Tree that is told of moves.
type expectant struct {
	*world
	told chan int      // how many leaves there are
	wait chan struct{} // what it waits for
}

func (e expectant) ExpectMove() error {
	leaves, _ := e.List()
	e.told <- len(leaves)
	<-e.wait
	return errors.New("nothing hangs on it")
}

// TestMoveIsExpected: a plan has the kernel prepare for the move when the leaf is made, and neither the reply nor an
// Attach waits for that; for plans that come meanwhile it is not asked again, for later ones it is.
func TestMoveIsExpected(t *testing.T) {
	var e expectant
	r := newRig(t, func(c *Config) {
		e = expectant{c.Tree.(*world), make(chan int, 10), make(chan struct{})}
		c.Tree = e
	})
	w := r.dial(operatorUID, 10)
	first := w.plan(api.PlanIn{Name: "a"})
	if n := <-e.told; n != 1 {
		t.Errorf("told with %d leaves: the kernel's lock would keep the leaf waiting", n)
	}
	w.plan(api.PlanIn{Name: "b"})
	r.w.spawn(20, operatorUID)
	if err := w.call("Attach", api.AttachIn{Lease: first.Lease, PID: 20}, nil); err != nil {
		t.Error(err)
	}
	if len(e.told) != 0 {
		t.Error("told again while it waits")
	}
	close(e.wait)
	for expecting := true; expecting; expecting = r.h.expecting.Load() {
		<-tick()
	}
	w.plan(api.PlanIn{Name: "c"})
	if n := <-e.told; n != 3 {
		t.Errorf("told with %d leaves", n)
	}
}
