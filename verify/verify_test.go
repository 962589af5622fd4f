package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/resolverd/probe"
	"github.com/gominimal/minhost/verify/golden"
)

func step(id installer.ID, required bool, o installer.Observation) installer.Row {
	return installer.Row{ID: id, Required: required, Observation: o}
}

// sample has a row of every state, and text that a terminal must not obey.
func sample() Report {
	return Merge(
		FromPlan(installer.Plan{Rows: []installer.Row{
			step("operator", true, installer.Observation{State: installer.Satisfied, Detail: "uid 1000"}),
			step("tree", true, installer.Observation{State: installer.Unknown, Detail: "only root can read it"}),
			step("names", false, installer.Observation{
				State: installer.Blocked, Detail: "systemd-resolved is not running",
				Loses: "only programs that ask 127.0.0.1:15353 find a name", Next: "systemctl status systemd-resolved"}),
			step("table", true, installer.Observation{State: installer.Absent, Detail: "no table inet minhost"}),
		}}, false),
		FromChecks([]api.Check{
			{Name: "tree", State: api.CheckStateOK, Detail: "boxes has id 4711, as the table says"},
			{Name: "conntrack", State: api.CheckStateWarning, Detail: "82 % full", Next: "sysctl net.netfilter.nf_conntrack_max"},
			{Name: "self-test", State: api.CheckStateUnknown, Detail: "no answer\x1b[2J"},
		}),
	)
}

func TestReportText(t *testing.T) {
	var out bytes.Buffer
	if err := sample().WriteText(&out); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "report.txt"), out.Bytes())
}

func TestReportJSON(t *testing.T) {
	b, err := json.MarshalIndent(sample(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "report.json"), append(b, '\n'))
}

func TestReady(t *testing.T) {
	for _, c := range []struct {
		states []State
		status int
	}{
		{nil, 1},
		{[]State{OK}, 0},
		{[]State{OK, Warning, Degraded, Unknown}, 0},
		{[]State{OK, Failed}, 1},
	} {
		var r Report
		for _, s := range c.states {
			r.Rows = append(r.Rows, Row{State: s})
		}
		if got := r.ExitStatus(); got != c.status {
			t.Errorf("%v: exit status %d, want %d", c.states, got, c.status)
		}
	}
}

func TestMergeKeepsOneRowOfAName(t *testing.T) {
	for _, c := range []struct{ first, second, want State }{
		{Unknown, OK, OK},
		{Unknown, Failed, Failed},
		{OK, Unknown, OK},
		{Failed, Unknown, Failed},
		{OK, Failed, Failed},
		{Failed, OK, Failed},
		{Degraded, Warning, Degraded},
		{Warning, Degraded, Degraded},
	} {
		r := Merge([]Row{{Name: "a", State: c.first}, {Name: "b"}}, []Row{{Name: "a", State: c.second}})
		if len(r.Rows) != 2 || r.Rows[0].Name != "a" || r.Rows[0].State != c.want {
			t.Errorf("%s then %s: %+v, want %s first", c.first, c.second, r.Rows, c.want)
		}
	}
}

func TestFromPlan(t *testing.T) {
	for _, c := range []struct {
		state          installer.State
		required, root bool
		want           State
		next           string
	}{
		{installer.Satisfied, true, false, OK, ""},
		{installer.Absent, true, false, Failed, "minhost finalize-install"},
		{installer.Drifted, true, false, Failed, "minhost finalize-install"},
		{installer.Foreign, true, false, Failed, ""},
		{installer.Blocked, true, false, Failed, ""},
		{installer.Blocked, false, false, Degraded, ""},
		{installer.Absent, false, false, Degraded, "minhost finalize-install"},
		{installer.Unknown, true, false, Unknown, ""},
		{installer.Unknown, true, true, Failed, ""},
		{installer.Unknown, false, true, Degraded, ""},
	} {
		r := step("x", c.required, installer.Observation{State: c.state})
		got := FromPlan(installer.Plan{Rows: []installer.Row{r}}, c.root)[0]
		if got.State != c.want || got.Next != c.next {
			t.Errorf("%v required=%v root=%v: %+v, want state %s next %q", c.state, c.required, c.root, got, c.want, c.next)
		}
	}
}

func TestRange(t *testing.T) {
	seen := map[netip.Addr]bool{}
	bad := netip.MustParseAddr("127.0.64.7")
	row := Range(context.Background(), func(_ context.Context, a netip.Addr) error {
		seen[a] = true
		if a == bad {
			return errors.New("bind 127.0.64.7: no such address")
		}
		return nil
	})
	delete(seen, hostsOwn) // the control
	if len(seen) != 254 || seen[netip.MustParseAddr("127.0.64.0")] || seen[netip.MustParseAddr("127.0.64.255")] {
		t.Errorf("%d addresses were bound", len(seen))
	}
	if row.State != Failed || !strings.HasPrefix(row.Detail, "1 of 254 addresses") || !strings.Contains(row.Detail, "127.0.64.7") {
		t.Errorf("%+v", row)
	}
}

func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		err    error
		state  State
		detail string
	}{
		{nil, OK, "127.0.0.1:1 answers over UDP and TCP, negatives with SOA; 6 lookups, the slowest 250 us, serial 9"},
		{errors.Join(errors.New("udp: no SOA"), errors.New("tcp: refused")), Failed, "udp: no SOA; tcp: refused"},
	} {
		row := Answer(context.Background(), "lookups", "127.0.0.1:1", func(_ context.Context, addr string) (probe.Result, error) {
			if addr != "127.0.0.1:1" {
				t.Errorf("asked %s", addr)
			}
			return probe.Result{Serial: 9, Queries: 6, Slowest: 250 * time.Microsecond}, c.err
		})
		if row.Name != "lookups" || row.State != c.state || row.Detail != c.detail || (row.Next == "") != (c.err == nil) {
			t.Errorf("%v: %+v", c.err, row)
		}
	}
}

type fakeHelper struct {
	status           api.StatusOut
	checks           api.VerifyOut
	statusErr, verEr error
}

func (f fakeHelper) Status(context.Context) (api.StatusOut, error) { return f.status, f.statusErr }
func (f fakeHelper) Verify(context.Context) (api.VerifyOut, error) { return f.checks, f.verEr }

func TestFromHelper(t *testing.T) {
	per := api.StatusOut{Version: "v1", PID: 7, Enforcement: api.EnforcementPerBox}
	for _, c := range []struct {
		name string
		h    fakeHelper
		want []string
	}{
		{"dead", fakeHelper{statusErr: errors.New("connection refused")}, []string{"helper failed"}},
		{"well", fakeHelper{status: per, checks: api.VerifyOut{Checks: []api.Check{{Name: "table", State: api.CheckStateOK}}}},
			[]string{"helper ok", "enforcement ok", "table ok"}},
		{"cannot enforce", fakeHelper{status: api.StatusOut{Enforcement: api.EnforcementNone, EnforcementCause: "no nftables"}},
			[]string{"helper ok", "enforcement degraded"}},
		{"may not check", fakeHelper{status: per, verEr: &api.NotAllowed{Message: "no operator"}},
			[]string{"helper ok", "enforcement ok", "kernel checks unknown"}},
	} {
		var got []string
		for _, r := range FromHelper(context.Background(), c.h) {
			got = append(got, r.Name+" "+string(r.State))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

func TestUnreachablePassesTheHintOn(t *testing.T) {
	if got := Unreachable(&api.Internal{Message: "x", Next: "journalctl -u minhost-helper"}).Next; got != "journalctl -u minhost-helper" {
		t.Errorf("next %q", got)
	}
}
