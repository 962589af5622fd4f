package reboot

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/verify"
)

var sound = verify.Report{Rows: []verify.Row{
	{Name: "table", State: verify.OK, Detail: "as it should be"},
	{Name: "names", State: verify.OK, Detail: "resolve"},
	{Name: "firewall", State: verify.Warning, Detail: "another one"},
}}

func marker(t *testing.T) Marker {
	t.Helper()
	m, err := Expect(sound, "boot-1", "v1", "d1", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMarker(t *testing.T) {
	m := marker(t)
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	// The form that verify/after-reboot.sh reads with sed.
	if !strings.Contains(string(b), "\n \"boot_id\": \"boot-1\",\n") {
		t.Errorf("a shell script cannot read it:\n%s", b)
	}
	again, err := Decode(b)
	if err != nil || !cmp.Equal(m, again) {
		t.Errorf("%v %s", err, cmp.Diff(m, again))
	}
	if !cmp.Equal(m.Expect, []string{"table", "names"}) {
		t.Errorf("expected: %v", m.Expect)
	}
	for name, text := range map[string]string{
		"empty": "", "another schema": strings.Replace(string(b), MarkerSchema, "minhost/v9/reboot", 1),
		"unknown member": strings.Replace(string(b), `"taken"`, `"stolen"`, 1), "more behind it": string(b) + "x",
		"no boot id": strings.Replace(string(b), "boot-1", "", 1),
	} {
		if _, err := Decode([]byte(text)); err == nil {
			t.Errorf("%s: read without an error", name)
		}
	}
	if _, err := Expect(verify.Report{Rows: []verify.Row{{Name: "x", State: verify.Failed}}}, "b", "v", "d", time.Now()); err == nil {
		t.Error("a host that is not ready gives an expectation")
	}
}

func TestCompare(t *testing.T) {
	with := func(change func(*Now)) Now {
		n := Now{BootID: "boot-2", Version: "v1", Digest: "d1", Report: sound, Parts: []Part{{"tree", 410 * time.Millisecond}}}
		change(&n)
		return n
	}
	rows := func(r ...verify.Row) verify.Report { return verify.Report{Rows: append(r, sound.Rows[1:]...)} }
	for _, c := range []struct {
		name  string
		now   Now
		ready bool
		says  string
	}{
		{"all is well", with(func(*Now) {}), true, "boot boot-2"},
		{"no reboot", with(func(n *Now) { n.BootID = "boot-1" }), false, "still the boot"},
		{"other bytes", with(func(n *Now) { n.Digest = "d2" }), false, "digest d2, had d1"},
		{"upgraded", with(func(n *Now) { n.Digest, n.Version = "d2", "v2" }), true, "v1 made the expectation"},
		{"by hand", with(func(n *Now) { n.ByHand = []string{"table", "names"} }), false, "by hand in this boot: table, names"},
		{"failed", with(func(n *Now) { n.Report = rows(verify.Row{Name: "table", State: verify.Failed, Detail: "empty"}) }), false, "empty"},
		{"degraded", with(func(n *Now) { n.Report = rows(verify.Row{Name: "table", State: verify.Degraded, Detail: "less"}) }), false, "is degraded: less"},
		{"gone", with(func(n *Now) { n.Report = rows() }), false, "was not observed now"},
		{"no times", with(func(n *Now) { n.Parts, n.NoParts = nil, "no journal" }), true, "no journal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := Compare(marker(t), c.now)
			var text bytes.Buffer
			if err := a.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			if a.Ready() != c.ready || !strings.Contains(text.String(), c.says) {
				t.Errorf("ready %v, want %v and %q:\n%s", a.Ready(), c.ready, c.says, &text)
			}
			var line bytes.Buffer
			if err := a.WriteLine(&line); err != nil {
				t.Fatal(err)
			}
			if strings.Count(line.String(), "\n") != 1 || strings.Contains(line.String(), "NOT READY") == c.ready ||
				!c.ready && !strings.Contains(line.String(), c.says) {
				t.Errorf("line: %q", &line)
			}
		})
	}
}

func TestJSON(t *testing.T) {
	b, err := json.Marshal(Compare(marker(t), Now{BootID: "boot-2", Version: "v1", Digest: "d1", Report: sound, Parts: []Part{{"tree", 410 * time.Millisecond}}}))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Schema string
		Ready  bool
		Marker Marker
		Times  map[string]float64 `json:"seconds_after_kernel_start"`
		Rows   []verify.Row
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != Schema || !got.Ready || got.Marker.BootID != "boot-1" || got.Times["tree"] != 0.41 || len(got.Rows) != 7 {
		t.Errorf("%s", b)
	}
}

// TestDigest: what is written counts, who looks does not.
func TestDigest(t *testing.T) {
	file := installer.File{Path: "/etc/x", Mode: 0o644, Content: []byte("a")}
	plan := func(f installer.File, describe string, s installer.State) installer.Plan {
		return installer.Plan{Rows: []installer.Row{{ID: "x", Describe: describe, Observation: installer.Observation{State: s, Files: []installer.File{f}}}}}
	}
	base := Digest(plan(file, "for ana", installer.Satisfied))
	if base != Digest(plan(file, "for root", installer.Unknown)) {
		t.Error("who looks changes the digest")
	}
	for _, f := range []installer.File{{Path: "/etc/y", Mode: 0o644, Content: []byte("a")}, {Path: "/etc/x", Mode: 0o600, Content: []byte("a")}, {Path: "/etc/x", Mode: 0o644, Content: []byte("b")}} {
		if Digest(plan(f, "for ana", installer.Satisfied)) == base {
			t.Errorf("%v has the digest of %v", f, file)
		}
	}
}
