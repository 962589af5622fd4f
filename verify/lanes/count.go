package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// tailLines is how much of a failure is printed.
const tailLines = 80

// event is one line of go test -json (see go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string // of build-output
	Test       string
	Output     string
	Elapsed    float64 // seconds, of one that has ended
}

// tally follows the events of one go test run.
type tally struct {
	tests    map[test]*result
	order    []test
	packages map[string]*result
	pkgOrder []string
}

type test struct{ pkg, name string }

// result is one test's or package's: the last action other than output, and the output's tail.
type result struct {
	action string
	lines  []string
	child  string // worst action of a subtest: "" without any
	took   time.Duration
}

func newTally() *tally {
	return &tally{tests: map[test]*result{}, packages: map[string]*result{}}
}

// count reads a stream of go test -json. A line that is no JSON is an error: it would be a test
// result lost.
func count(r io.Reader) (summary, error) {
	t := newTally()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return t.summary(), fmt.Errorf("go test printed what is no JSON: %s", lines.Text())
		}
		t.add(e)
	}
	return t.summary(), lines.Err()
}

func (t *tally) add(e event) {
	if e.Package == "" {
		e.Package, _, _ = strings.Cut(e.ImportPath, " ") // "p [p.test]"
	}
	var r *result
	if e.Test == "" {
		r = t.pkg(e.Package)
	} else {
		r = t.test(test{e.Package, e.Test})
	}
	switch e.Action {
	case "output", "build-output":
		r.lines = append(r.lines, e.Output)
		if len(r.lines) > tailLines {
			r.lines = r.lines[1:]
		}
	case "run", "pass", "fail", "skip", "build-fail":
		r.action = e.Action
		r.took = time.Duration(e.Elapsed * float64(time.Second))
	}
}

func (t *tally) pkg(name string) *result {
	r, ok := t.packages[name]
	if !ok {
		r = &result{}
		t.packages[name] = r
		t.pkgOrder = append(t.pkgOrder, name)
	}
	return r
}

func (t *tally) test(k test) *result {
	r, ok := t.tests[k]
	if !ok {
		r = &result{}
		t.tests[k] = r
		t.order = append(t.order, k)
	}
	return r
}

// summary counts leaves: a test with subtests counts only when it failed and none of them did.
func (t *tally) summary() summary {
	var s summary
	failed := map[string]bool{} // packages that have a failed test
	t.inherit()
	for _, k := range t.order {
		r := t.tests[k]
		name := k.name + " (" + short(k.pkg) + ")"
		switch {
		case r.child == "fail", r.child != "" && (r.action == "pass" || r.action == "skip"):
		case r.action == "pass":
			s.passed++
		case r.action == "skip":
			s.skips = append(s.skips, outcome{name, skipReason(r.lines)})
		default: // fail, or begun and never ended
			s.failures = append(s.failures, outcome{name, strings.Join(r.lines, "")})
			failed[k.pkg] = true
		}
	}
	for _, name := range t.pkgOrder {
		r := t.packages[name]
		s.times = append(s.times, timed{short(name), r.took})
		if (r.action == "fail" || r.action == "build-fail") && !failed[name] {
			s.failures = append(s.failures, outcome{short(name), strings.Join(r.lines, "")})
			continue
		}
		if reason := packageSkip(r.lines); reason != "" {
			s.skips = append(s.skips, outcome{short(name), reason})
		}
	}
	return s
}

// inherit tells every test the worst thing that happened to a test below it.
func (t *tally) inherit() {
	for _, k := range t.order {
		r := t.tests[k]
		for up := k.name; strings.Contains(up, "/"); {
			up = up[:strings.LastIndex(up, "/")]
			parent, ok := t.tests[test{k.pkg, up}]
			if !ok {
				continue
			}
			if r.action == "fail" || r.action == "run" {
				parent.child = "fail"
			} else if parent.child == "" {
				parent.child = r.action
			}
		}
	}
}

var (
	packageSkipLine = regexp.MustCompile(`^SKIP (.+)`)
	logLine         = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)`)
)

// packageSkip finds the line by which a TestMain says that its package cannot run here.
func packageSkip(lines []string) string {
	for _, l := range lines {
		if m := packageSkipLine.FindStringSubmatch(l); m != nil {
			return m[1]
		}
	}
	return ""
}

// skipReason is what t.Skip was given: the last log line of the test.
func skipReason(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		if m := logLine.FindStringSubmatch(lines[i]); m != nil {
			return m[1]
		}
	}
	return "no reason given"
}

// short drops the name of the module.
func short(pkg string) string {
	return strings.TrimPrefix(pkg, "github.com/gominimal/minhost/")
}
