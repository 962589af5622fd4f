package boxes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/verify/netlab"
)

// Ports of the host in these tests: every box may reach the first or nothing; none may reach the second.
const (
	openDoor   = "127.0.0.1:8099"
	closedDoor = "127.0.0.1:8098"
)

// faultRun is one operation that a fault meets.
type faultRun struct {
	*faulty
	c      *client.Client
	call   context.Context // of the operation's call
	plan   api.PlanOut
	target *agent // who is attached or joined; tries to get through closedDoor once it is in a leaf
	all    []*agent
}

// operation is a call with what comes before it. The error of do is the caller's: under a fault anything.
type operation struct {
	// before plans, and attaches unless planned says not to.
	in      api.PlanIn
	bare    bool // nothing planned before
	planned bool // not attached before
	do      func(*faultRun) error
}

func hostPlan() api.PlanIn {
	return api.PlanIn{Name: "faulted", Mode: api.ModeHost, Policy: rules("127.0.0.1 8099 tcp")}
}

func ending(in api.PlanIn) api.PlanIn {
	in.EndWithConnection = true
	return in
}

func guestPlan() api.PlanIn {
	return api.PlanIn{Name: "faulted", Mode: api.ModeOwnIP, Policy: denyPolicy(), Tap: &tap}
}

// operations are all that change the host.
func operations() map[string]operation {
	attach := func(r *faultRun) error {
		tap, err := r.c.AttachTap(r.call, api.AttachIn{Lease: r.plan.Lease, PID: r.target.PID()}, nil)
		if tap != nil {
			tap.Close()
		}
		return err
	}
	teardown := func(r *faultRun) error {
		_, err := r.c.Teardown(r.call, api.TeardownIn{Lease: r.plan.Lease, Secret: r.plan.Secret, Kill: true})
		return err
	}
	return map[string]operation{
		"plan":            {in: hostPlan(), bare: true, do: (*faultRun).doPlan},
		"abandon":         {in: hostPlan(), planned: true, do: func(r *faultRun) error { return r.c.Abandon(r.call, api.AbandonIn{Lease: r.plan.Lease}) }},
		"close a plan":    {in: hostPlan(), planned: true, do: func(r *faultRun) error { return r.c.Close() }},
		"attach":          {in: hostPlan(), planned: true, do: attach},
		"attach own_ip":   {in: guestPlan(), planned: true, do: attach},
		"join":            {in: hostPlan(), do: (*faultRun).join},
		"update":          {in: hostPlan(), do: (*faultRun).tighten},
		"listen":          {in: hostPlan(), do: (*faultRun).listen},
		"teardown":        {in: hostPlan(), do: teardown},
		"teardown own_ip": {in: guestPlan(), do: teardown},
		"close a box":     {in: ending(hostPlan()), do: func(r *faultRun) error { return r.c.Close() }},
	}
}

func (r *faultRun) doPlan() (err error) {
	r.plan, err = r.c.Plan(r.call, hostPlan())
	return err
}

func (r *faultRun) join() error {
	r.target = r.prober(closedDoor)
	r.all = append(r.all, r.target)
	_, ns, err := r.c.Join(r.call, api.JoinIn{Lease: r.plan.Lease, Secret: r.plan.Secret, Kind: api.JoinKindTask, PID: r.target.PID()}, nil)
	if ns != nil {
		ns.Close()
	}
	return err
}

func (r *faultRun) listen() error {
	_, s, err := r.c.Listen(r.call, api.ListenIn{Lease: r.plan.Lease, Secret: r.plan.Secret, Protocol: api.ProtocolTCP})
	if s != nil {
		s.Close()
	}
	return err
}

// tighten takes the open door away from a box that has it open, with a flow that is to be cut.
func (r *faultRun) tighten() error {
	return r.c.Update(r.call, api.UpdateIn{Lease: r.plan.Lease, Secret: r.plan.Secret, Policy: new(denyPolicy())})
}

// ready does what comes before an operation.
func (f *faulty) ready(o operation) *faultRun {
	f.Helper()
	r := &faultRun{faulty: f, c: f.dial(operatorUID), call: f.ctx()}
	if o.bare {
		return r
	}
	var err error
	r.plan, err = r.c.Plan(f.ctx(), o.in)
	f.must(err)
	if o.in.Mode == api.ModeHost {
		r.target = f.prober(closedDoor)
	} else {
		r.target = f.alone()
	}
	r.all = []*agent{r.target}
	if o.planned {
		return r
	}
	t, err := r.c.AttachTap(f.ctx(), api.AttachIn{Lease: r.plan.Lease, PID: r.target.PID()}, nil)
	if t != nil {
		t.Close()
	}
	f.must(err)
	return r
}

// bystanders are boxes that live through all faults.
type bystanders struct {
	keep, deny *box
	prober     *agent
	base       int // leases
}

func (f *faulty) bystanders() bystanders {
	f.Helper()
	netlab.Echo(f, "tcp", openDoor, 0)
	netlab.Echo(f, "tcp", closedDoor, 0)
	netlab.Echo(f, "udp", closedDoor, 0)
	b := bystanders{keep: f.box("keep", rules("127.0.0.1 8099 tcp")), deny: f.box("deny", denyPolicy()), base: 2}
	b.prober = f.prober(closedDoor)
	_, _, err := b.deny.c.Join(f.ctx(), api.JoinIn{Lease: b.deny.plan.Lease, Secret: b.deny.plan.Secret, Kind: api.JoinKindTask, PID: b.prober.PID()}, nil)
	f.must(err)
	return b
}

// settled ends what a faulted operation left, as its runner would, and requires that helper and kernel agree
// before and after, and that nobody got through the closed door.
func (r *faultRun) settled(b bystanders) {
	r.Helper()
	r.within(10*time.Second, "helper and kernel agree", r.agree)
	if r.target != nil && !r.plan.Net.Isolate && r.alive() {
		if p := r.target.probed(); p.Reached > 0 {
			r.Errorf("the target got through: %+v", p)
		}
	}
	if p := b.prober.probed(); p.Reached > 0 {
		r.Fatalf("a box that may reach nothing got through: %+v", p)
	}
	if o := b.keep.dial("tcp", openDoor); !o.OK() {
		r.Errorf("the box that lives lost what it may reach: %v", o)
	}
	if o := b.keep.dial("tcp", closedDoor); o.OK() {
		r.Errorf("the box that lives gained something: %v", o)
	}
	c := r.dial(operatorUID)
	defer c.Close()
	_, err := c.Teardown(r.ctx(), api.TeardownIn{Lease: r.plan.Lease, Secret: r.plan.Secret, Kill: true})
	if gone := new(api.NoSuchLease); err != nil && !errors.As(err, &gone) {
		r.Errorf("teardown behind the fault: %v", err)
	}
	for _, a := range r.all {
		a.Kill()
	}
	r.c.Close()
	r.within(10*time.Second, "the two that live are left", func() error {
		leases, err := r.leases()
		if err == nil && len(leases) != b.base {
			err = fmt.Errorf("leases %+v", leases)
		}
		return errors.Join(err, r.agree())
	})
	s, err := r.status()
	r.must(err)
	if s.Plans != s.Attaches+s.Abandons || s.Attaches != s.Teardowns+b.base {
		r.Errorf("%d plans, %d attaches, %d abandons, %d teardowns, %d live", s.Plans, s.Attaches, s.Abandons, s.Teardowns, b.base)
	}
}

// alive tells whether the target still runs: a zombie answers nobody.
func (r *faultRun) alive() bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.target.PID()))
	return err == nil && !strings.Contains(string(b), ") Z ")
}
