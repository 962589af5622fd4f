package main

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/verify/golden"
)

// leases has a box of each kind; the names try to move a cursor.
func leases() []api.LeaseInfo {
	return []api.LeaseInfo{
		{Lease: "b1", Name: "web", Address: "127.0.64.1", UID: 1000, State: api.LeaseStateAttached, Number: 1,
			Policy:      &api.Policy{Egress: api.EgressRules, Rules: []api.Rule{{To: "192.0.2.0/24", Protocol: api.ProtocolTCP}}},
			Enforcement: api.EnforcementPerBox, Boundary: api.BoundaryStrict, Processes: 3, Refused: 17, Since: "2026-01-02T03:04:05Z",
			Listeners: []api.Listener{{Protocol: api.ProtocolTCP, Address: "127.0.64.1", Port: 3000, URL: "http://web.min.internal:3000"},
				{Protocol: api.ProtocolTCP, Address: "127.0.64.1", Port: 5432}, {Protocol: api.ProtocolUDP, Address: "::1", Port: 53}}},
		{Lease: "b2", UID: 1000, State: api.LeaseStatePlanned, Policy: &api.Policy{Egress: api.EgressDeny},
			Enforcement: api.EnforcementNone, Boundary: api.BoundaryCooperative},
		{Name: "x\x1b[2J\u009b2J", Address: "127.0.64.9", UID: 1001, State: api.LeaseStateAttached},
	}
}

func TestDisplay(t *testing.T) {
	helper := &fakeHelper{
		list: api.ListOut{Leases: leases()},
		status: api.StatusOut{
			Version: "v0.1", PID: 42, Since: "2026-01-02T03:04:05Z", BootID: "c0ffee", Enforcement: api.EnforcementNone,
			EnforcementCause: "no nftables", ServiceManager: "standalone", Leases: 2, Plans: 9, Attaches: 5, Abandons: 4, Teardowns: 3,
			Traffic: []api.Traffic{{Plane: "cohort", SentPackets: 7, SentBytes: 420, ReceivedPackets: 6, ReceivedBytes: 9000}, {Plane: "runner", UID: 1000, SentPackets: 3, SentBytes: 87}, {Plane: "box", Lease: "b1", UID: 1000, SentPackets: 7, SentBytes: 420}},
		},
		events: []api.Event{
			{Kind: api.EventKindAttached, Time: "2026-01-02T03:04:05Z", Lease: "b1", Box: "web", Text: "pid 77"},
			{Kind: api.EventKindRefusal, Time: "2026-01-02T03:04:06Z", Lease: "b2", Text: "evil\r\nline",
				Refusal: &api.Refusal{Kind: api.RefusalKindAddress, Destination: "192.0.2.7", Port: 443, Count: 1}},
		},
		checks: api.VerifyOut{Checks: []api.Check{{Name: "table", State: api.CheckStateOK, Detail: "as the leases say"}}},
	}
	for golded, args := range map[string][]string{
		"ls.txt":      {"ls"},
		"ls.json":     {"ls", "--json"},
		"status.txt":  {"status"},
		"status.json": {"status", "--json"},
		"watch.txt":   {"watch"},
		"watch.json":  {"watch", "--json"},
		"verify.txt":  {"verify"},
		"verify.json": {"verify", "--json"},
	} {
		t.Run(golded, func(t *testing.T) {
			helper.closed = false
			l := newLab(t, helper)
			if code := l.run(t, args...); code != 0 {
				t.Errorf("exit status %d: %s", code, l.errOut.String())
			}
			golden.Check(t, filepath.Join("testdata", golded), l.out.Bytes())
			for _, c := range l.out.Bytes() {
				if (c < ' ' && c != '\n') || c > '~' {
					t.Errorf("octet %#x was printed", c)
				}
			}
			if !helper.closed {
				t.Error("the connection was left open")
			}
		})
	}
}

func TestNoBoxes(t *testing.T) {
	l := newLab(t, &fakeHelper{})
	if code := l.run(t, "ls"); code != 0 || l.out.String() != "no boxes\n" {
		t.Errorf("exit status %d, %q", code, l.out.String())
	}
	if code := l.run(t, "ls", "--json"); code != 0 || l.out.String() != "{\n  \"schema\": \"minhost/v1/ls\",\n  \"leases\": []\n}\n" {
		t.Errorf("exit status %d, %q", code, l.out.String())
	}
}

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		name   string
		helper *fakeHelper
		args   []string
		code   int
		out    string
		errOut string
	}{
		{"allowed", &fakeHelper{explain: api.ExplainOut{Allowed: true, Reason: "a rule allows it", Rule: "192.0.2.0/24:443/tcp"}},
			nil, 0, "allowed: a rule allows it (rule 192.0.2.0/24:443/tcp)\n", ""},
		{"refused", &fakeHelper{explain: api.ExplainOut{Reason: "no rule of box web allows it"}},
			nil, 1, "refused: no rule of box web allows it\n", ""},
		{"no such box", &fakeHelper{err: &api.NoSuchLease{Message: "there is no box web", Next: "minhost ls"}},
			nil, 2, "", "minhost: there is no box web\nnext: minhost ls\n"},
		{"bad protocol", &fakeHelper{}, []string{"--protocol", "sctp"},
			2, "", "minhost: protocol sctp: not tcp, udp, icmp or any\nnext: minhost explain --help\n"},
		{"no helper", nil, nil, 2, "", "minhost: unexpected EOF\nnext: start /run/test.sock\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, c.helper)
			code := l.run(t, append([]string{"explain", "web", "192.0.2.7:443"}, c.args...)...)
			if code != c.code || l.out.String() != c.out || l.errOut.String() != c.errOut {
				t.Errorf("exit status %d, out %q, err %q", code, l.out.String(), l.errOut.String())
			}
		})
	}
}

func TestExplainAsksWhatItWasAsked(t *testing.T) {
	h := &fakeHelper{}
	newLab(t, h).run(t, "explain", "web", "[2001:db8::1]:53", "--protocol", "udp")
	if want := (api.ExplainIn{Box: "web", Destination: "[2001:db8::1]:53", Protocol: "udp"}); h.explained != want {
		t.Errorf("asked %+v", h.explained)
	}
}

func TestWatchOneBox(t *testing.T) {
	h := &fakeHelper{list: api.ListOut{Leases: leases()}}
	for _, box := range []string{"web", "b1"} {
		h.watched = api.WatchIn{}
		if code := newLab(t, h).run(t, "watch", box); code != 0 || h.watched.Lease != "b1" {
			t.Errorf("watch %s: exit status %d, asked %+v", box, code, h.watched)
		}
	}
	l := newLab(t, h)
	if code := l.run(t, "watch", "nobody"); code != 1 || l.errOut.String() !=
		"minhost: watch nobody: you have no box of this name or lease id\nnext: minhost ls\n" {
		t.Errorf("exit status %d, %q", code, l.errOut.String())
	}
}

func TestErrorsArePrintedOnce(t *testing.T) {
	h := &fakeHelper{err: errors.New("broken pipe")}
	for _, verb := range []string{"ls", "status", "watch"} {
		l := newLab(t, h)
		if code := l.run(t, verb); code != 1 || l.errOut.String() != "minhost: broken pipe\n" || l.out.Len() > 0 {
			t.Errorf("%s: exit status %d, out %q, err %q", verb, code, l.out.String(), l.errOut.String())
		}
	}
	for _, args := range [][]string{{"nonsense"}, {"ls", "x"}, {"ls", "--nonsense"}, {"explain", "a"}, {"operator", "nonsense"}} {
		l := newLab(t, h)
		if code := l.run(t, args...); code != statusUsage {
			t.Errorf("%v: exit status %d, %s", args, code, l.errOut.String())
		}
	}
}

func TestVerifyWithoutHelper(t *testing.T) {
	l := newLab(t, nil)
	if code := l.run(t, "verify"); code != 1 {
		t.Errorf("exit status %d", code)
	}
	golden.Check(t, filepath.Join("testdata", "verify-no-helper.txt"), l.out.Bytes())
}

func TestRefusedText(t *testing.T) {
	got := refusedText(api.StatusOut{Enforcement: api.EnforcementPerBox, Refused: 5, RefusalsTold: 3, RefusalsLost: 1})
	if want := "5 packets since the table was filled, 3 told, 1 times too fast to be read"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
