package launchd

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

// script is a launchctl that gives one answer after the other, by verb; the last one stays.
type script struct {
	answers map[string][]answer
	now     time.Time
}

type answer struct {
	code   int
	stdout string
	stderr string
}

func (s *script) run(c host.Command) (host.Result, error) {
	verb := c.Args[0]
	list := s.answers[verb]
	if len(list) == 0 {
		return host.Result{}, nil
	}
	a := list[0]
	if len(list) > 1 {
		s.answers[verb] = list[1:]
	}
	r := host.Result{Stdout: []byte(a.stdout), Stderr: []byte(a.stderr)}
	if a.code != 0 {
		return r, hosttest.Failure(c, a.code, a.stderr)
	}
	return r, nil
}

func (s *script) Now() time.Time { return s.now }
func (s *script) Sleep(_ context.Context, d time.Duration) error {
	s.now = s.now.Add(d)
	return nil
}

func control(answers map[string][]answer) (Control, *hosttest.Runner, *script) {
	s := &script{answers: answers}
	r := hosttest.NewRunner(nil)
	r.On(launchctlPath, s.run)
	return Control{r, s}, r, s
}

func verbs(r *hosttest.Runner) string {
	var all []string
	for _, line := range r.Ran() {
		all = append(all, strings.Fields(line)[1])
	}
	return strings.Join(all, " ")
}

var (
	absent = answer{code: 113, stderr: "Bad request.\nCould not find service \"x\" in domain for system"}
	loaded = answer{stdout: "system/x = {\n\tstate = running\n}\n"}
	busy   = answer{code: 5, stderr: "Bootstrap failed: 5: Input/output error"}
)

func repeat(a answer, n int, then ...answer) []answer {
	var all []answer
	for range n {
		all = append(all, a)
	}
	return append(all, then...)
}

// TestIn is the sequence of every code that launchctl was seen to give.
func TestIn(t *testing.T) {
	off := answer{stdout: "\t\"x\" => disabled\n"}
	for name, c := range map[string]struct {
		answers map[string][]answer
		want    string // verbs
		fails   string // part of the error
		slept   time.Duration
	}{
		"fresh": {map[string][]answer{"print": {absent}}, "print-disabled print bootstrap", "", 0},
		"loaded, label busy for 5 s": {map[string][]answer{"print": append(repeat(loaded, 20), absent)},
			"print-disabled print bootout " + strings.TrimSpace(strings.Repeat("print ", 20)) + " bootstrap", "", 19 * goneEvery},
		"ten times 5":      {map[string][]answer{"print": {absent}, "bootstrap": repeat(busy, 10, answer{})}, "", "", 10 * loadEvery},
		"37 in the log":    {map[string][]answer{"print": {absent}, "bootstrap": {{code: 37}, {}}}, "print-disabled print bootstrap print-disabled bootstrap", "", loadEvery},
		"disabled":         {map[string][]answer{"print": {absent}, "print-disabled": {off}}, "print-disabled enable print bootstrap", "", 0},
		"disabled, old":    {map[string][]answer{"print": {absent}, "print-disabled": {{stdout: "\"x\" => true\n"}}}, "print-disabled enable print bootstrap", "", 0},
		"119, not listed":  {map[string][]answer{"print": {absent}, "bootstrap": {{code: 119, stderr: "Service is disabled"}, {}}}, "print-disabled print bootstrap enable bootstrap", "", loadEvery},
		"5 for disabled":   {map[string][]answer{"print": {absent}, "print-disabled": {{}, off}, "bootstrap": {busy, {}}}, "print-disabled print bootstrap print-disabled enable bootstrap", "", loadEvery},
		"122":              {map[string][]answer{"print": {absent}, "bootstrap": {{code: 122}}}, "print-disabled print bootstrap", "owner or mode", 0},
		"5 for ownership":  {map[string][]answer{"print": {absent}, "bootstrap": {{code: 5, stderr: "x.plist: Path had bad ownership/permissions"}}}, "", "owner or mode", loadWait},
		"5 that stays":     {map[string][]answer{"print": {absent}, "bootstrap": {busy}}, "", "does not go away", loadWait},
		"another code":     {map[string][]answer{"print": {absent}, "bootstrap": {{code: 78, stderr: "what"}}}, "print-disabled print bootstrap", "code 78: what", 0},
		"bootout says 36":  {map[string][]answer{"print": {loaded, loaded, absent}, "bootout": {{code: 36}}}, "print-disabled print bootout print print bootstrap", "", goneEvery},
		"bootout says 3":   {map[string][]answer{"print": {loaded, absent}, "bootout": {{code: 3}}}, "print-disabled print bootout print bootstrap", "", 0},
		"never leaves":     {map[string][]answer{"print": {loaded}}, "", "still there", goneWait},
		"bootout says 125": {map[string][]answer{"print": {loaded}, "bootout": {{code: 125, stderr: "domain"}}}, "print-disabled print bootout", "code 125", 0},
	} {
		ctl, r, s := control(c.answers)
		err := ctl.In(t.Context(), "x", "/Library/LaunchDaemons/x.plist")
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: error %v, want %q", name, err, c.fails)
		}
		if got := verbs(r); c.want != "" && got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
		if slept := s.now.Sub(time.Time{}); slept != c.slept {
			t.Errorf("%s: slept %v, want %v", name, slept, c.slept)
		}
	}
}

// TestOut: what is not loaded is no error of undo, in both spellings.
func TestOut(t *testing.T) {
	for _, a := range []answer{absent, {code: 113, stderr: "Could not find service"}, {code: 3}} {
		ctl, r, _ := control(map[string][]answer{"print": {a}})
		if err := ctl.Out(t.Context(), "x"); err != nil || verbs(r) != "print" {
			t.Errorf("%+v: %v, %s", a, err, verbs(r))
		}
	}
}

// TestNoReads: looking is no change that a gate is asked for.
func TestNoReads(t *testing.T) {
	ctl, r, _ := control(map[string][]answer{"print": {loaded}})
	gate, tally := hosttest.Count()
	r.Gate = gate
	_, err1 := ctl.Status(t.Context(), "x")
	_, err2 := ctl.Disabled(t.Context(), "x")
	if err1 != nil || err2 != nil || tally.N() != 0 {
		t.Errorf("%v %v, changes %v", err1, err2, tally.Changes())
	}
}

// TestFailure is what a person reads of each code that stays: what it means, and what to type next.
func TestFailure(t *testing.T) {
	for _, c := range []struct {
		code   int
		stderr string
		want   []string
	}{
		{3, "Boot-out failed: 3: No such process", []string{"no such job", "minhost finalize-install"}},
		{5, "Bootstrap failed: 5: Input/output error", []string{"does not go away", "Input/output error", "launchctl print system/x", "plutil -lint /Library/LaunchDaemons/x.plist"}},
		{5, "x.plist: Service is disabled", []string{"is disabled", "sudo launchctl enable system/x"}},
		{5, "x.plist: Path had bad ownership/permissions", []string{"owner or mode", "ls -l /Library/LaunchDaemons"}},
		{36, "Boot-out failed: 36: Operation now in progress", []string{"does not go away", "launchctl print system/x"}},
		{37, "Bootstrap failed: 37: Operation already in progress", []string{"does not go away", "launchctl print system/x"}},
		{113, "Bad request.\nCould not find service", []string{"no such job", "minhost finalize-install"}},
		{119, "Bootstrap failed: 119", []string{"is disabled", "print-disabled", "sudo launchctl enable system/x"}},
		{122, "Bootstrap failed: 122", []string{"owner or mode", "ls -l /Library/LaunchDaemons"}},
		{78, "Function not\n implemented", []string{"Function not implemented", "launchctl error 78"}},
	} {
		text := failure("verb", "x", c.code, []byte(c.stderr)).Error()
		for _, w := range append(c.want, "launchctl verb x: code "+strconv.Itoa(c.code)+": ", "; look: ") {
			if !strings.Contains(text, w) {
				t.Errorf("%d: %q lacks %q", c.code, text, w)
			}
		}
		if strings.Contains(text, "\n") {
			t.Errorf("%d: %q", c.code, text)
		}
	}
}
