package helper

import (
	"context"
	"sync"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// box is a lease and what carries it out.
//
// The rule of locking: what changes while a box lives is written under Helper.mu and read under it. Of the lease
// that is State, Policy, Generation, Cutting, NetNS and Strict; a method of lease.Lease has a copy of all of it, so
// it is called under the lock too. All else of the lease never changes once Plan has set leaf, and is read anywhere, and
// so is leaf: find gives no box to a call before. netns changes in the call that attaches or ends the box
// alone, which need not lock to read it.
//
// State is the last of an attempt to attach that changes, whichever way it goes: who finds a box planned may end it.
//
// The order of locks: changing or moving, then refilling, then mu; publishing, repairing, looking and accounts.mu before mu
// as well; members.mu and then that of events behind all. Under mu nothing waits for the kernel but a replay, which is
// alone.
type box struct {
	lease.Lease
	leaf Leaf // nil while Plan makes it
	// enforced says that the table has the verdict, or is about to.
	enforced bool
	// uncut says that flows of an older policy could not be ended; Cutting stays until they are.
	uncut bool
	// named says the same of the zone and the name.
	named bool
	// owner is the connection that planned or adopted; nil when it is closed.
	owner   *conn
	refused refusals
	// unwatch stops the goroutine that waits for the leaf to empty.
	unwatch context.CancelFunc
	// over is closed when the box is gone.
	over chan struct{}
	// netns is the network namespace of an attached none or own_ip box; nil when it is gone, or not found
	// again behind a restart.
	netns Namespace
	// members are processes that were seen in the leaf; guarded by members.mu.
	members members
	// changing orders the writes to the table of one box; taken before Helper.mu.
	changing sync.Mutex
	// moving is held for reading while a process joins, and for writing from the look whether there is one to the
	// decision that the box ends.
	moving sync.RWMutex
	// needs is how many elements the policy takes if no other box has it; nil until somebody asks.
	needs *int
}

// ended remembers a lease for a while, so that a repeated call gets the same answer.
type ended struct {
	lease    lease.Lease
	op       lease.Op
	at       time.Time
	refusals []api.Refusal
}
