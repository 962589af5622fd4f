package darwin

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/darwin/loopback"
	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

// step is a step that only has an id.
type step struct{ installer.Step }

type named struct {
	step
	id installer.ID
}

func (n named) ID() installer.ID { return n.id }

// TestOrder: the answerer before the resolver file, which undo then takes first.
func TestOrder(t *testing.T) {
	all := Order(Parts{Program: named{id: "program"}, Operator: named{id: "operator"}, Range: named{id: RangeID}, Loopback: named{id: LoopbackID},
		Answerer: named{id: AnswererID}, Helper: named{id: HelperID}, Names: named{id: "names"}})
	var ids []string
	for _, s := range all {
		ids = append(ids, string(s.ID()))
	}
	if got := strings.Join(ids, " "); got != "program operator range loopback answerer helper names" {
		t.Error(got)
	}
}

// lo0 is a model of it.
type lo0 map[netip.Addr]uint32

func (l lo0) List(context.Context) ([]loopback.Alias, error) {
	var all []loopback.Alias
	for a, m := range l {
		all = append(all, loopback.Alias{Addr: a, Mask: m})
	}
	return all, nil
}
func (l lo0) Set(_ context.Context, a loopback.Alias) error { l[a.Addr] = a.Mask; return nil }
func (l lo0) Remove(_ context.Context, a netip.Addr) error  { delete(l, a); return nil }
func (l lo0) bind(a netip.Addr) error {
	if _, ok := l[a]; !ok {
		return errors.New("can't assign requested address")
	}
	return nil
}

func boot(id string) Boot {
	r := hosttest.NewRunner(nil)
	r.On(sysctlPath, func(c host.Command) (host.Result, error) {
		if c.Args[1] == "kern.boottime" {
			return host.Result{Stdout: []byte("{ sec = 1760000000, usec = 250000 } Thu Oct  9 10:53:20 2025\n")}, nil
		}
		return host.Result{Stdout: []byte(id + "\n")}, nil
	})
	return Boot{r}
}

// TestRangeUndo: others' aliases stay, of the range too, and one whose mask was mended gets its own back.
func TestRangeUndo(t *testing.T) {
	before := map[string]uint32{"127.0.0.1": 0xff000000, "127.0.65.1": 0xffffffff, "127.0.64.0": 0xffffff00, "127.0.64.9": 0xff000000, "127.0.64.10": loopback.HostMask,
		"10.254.254.254": 0xffffff00}
	l := lo0{}
	for a, m := range before {
		l[netip.MustParseAddr(a)] = m
	}
	s := RangeStep{Keeper: loopback.Keeper{Interfaces: l, Bind: l.bind, Clock: host.SystemClock{}}, Boot: boot("6A5C1F00-0000"), Log: slog.New(slog.DiscardHandler)}
	var rec installer.Record
	if o, err := s.Probe(t.Context()); err != nil || o.State != installer.Drifted {
		t.Fatalf("%+v %v", o, err)
	}
	if err := s.Apply(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	if o, err := s.Probe(t.Context()); err != nil || o.State != installer.Satisfied || len(l) != 254+4 {
		t.Fatalf("%+v %v, %d aliases", o, err, len(l))
	}
	if err := s.Undo(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	for a, m := range before {
		if l[netip.MustParseAddr(a)] != m {
			t.Errorf("%s has mask %08x, had %08x", a, l[netip.MustParseAddr(a)], m)
		}
	}
	if len(l) != len(before) {
		t.Errorf("%d aliases, were %d", len(l), len(before))
	}
}

func TestBoot(t *testing.T) {
	b := boot("6A5C1F00-0000")
	at, err := b.Time(t.Context())
	if err != nil || !at.Equal(time.Unix(1760000000, 250000000)) {
		t.Errorf("%v %v", at, err)
	}
	if id, err := b.ID(t.Context()); err != nil || id != "6A5C1F00-0000" {
		t.Errorf("%q %v", id, err)
	}
	if _, err := boot("").ID(t.Context()); err == nil {
		t.Error("an empty boot id passes: every other boot would count as this one")
	}
	for _, text := range []string{"", "{ sec = , usec = 1 }", "{ usec = 1 }"} {
		if _, err := parseBootTime(text); err == nil {
			t.Errorf("%q is a time", text)
		}
	}
	if s := b.Stamp(t.Context()); len(s) != 4 || s[0] != "boot" || s[2] != "since_boot" {
		t.Errorf("%v", s)
	}
}

// TestReadyAt: a line of an earlier boot proves nothing, though its stamp is later than all of this boot.
func TestReadyAt(t *testing.T) {
	log := "time=2031-01-01T00:00:00.000Z level=INFO msg=ready part=range boot=OLD since_boot=9s added=254\n" +
		"time=2026-01-01T00:00:01.000Z level=ERROR msg=\"not ready\" part=range boot=NEW since_boot=11s\n"
	if since, ok := ReadyAt([]byte(log), "NEW"); ok {
		t.Errorf("ready after %v by a line of another boot", since)
	}
	log += "time=2026-01-01T00:00:02.000Z level=INFO msg=ready part=range boot=NEW since_boot=12.5s added=1\n" +
		"time=2026-01-01T00:00:09.000Z level=INFO msg=ready part=range boot=NEW since_boot=90s added=0\n"
	if since, ok := ReadyAt([]byte(log), "NEW"); !ok || since != 12500*time.Millisecond {
		t.Errorf("%v %v", since, ok)
	}
}

// TestJobs: what the jobs run, and that each is another label.
func TestJobs(t *testing.T) {
	l := DefaultLayout()
	loop, answerer, helper := Jobs(l, strings.Repeat("a", 64), netip.MustParseAddrPort("127.0.0.1:15353"), Evidence{AnswererUID: 7})
	if !slices.Equal(loop.Job.Program, []string{l.Program, "apply", "--at-boot", "--only", "range"}) || !loop.Job.OneShot || loop.Works != nil {
		t.Errorf("%+v", loop.Job)
	}
	if answerer.Job.User != AnswererUser || answerer.LogOwner != 7 || len(answerer.Job.Listen) != 1 || answerer.Job.OneShot {
		t.Errorf("%+v", answerer.Job)
	}
	if helper.Job.User != "" || helper.Job.OneShot || len(helper.Job.Listen) != 0 {
		t.Errorf("%+v", helper.Job)
	}
	labels := map[string]bool{loop.Job.Label: true, answerer.Job.Label: true, helper.Job.Label: true, loop.Job.Log: true, answerer.Job.Log: true}
	if len(labels) != 5 {
		t.Error("labels or logs are shared")
	}
}
