package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pkg is a package of the module as go test -json names it.
const pkg = module + "/a"

func stream(lines ...string) *strings.Reader {
	for i, l := range lines {
		lines[i] = strings.ReplaceAll(l, "PKG", pkg)
	}
	return strings.NewReader(strings.Join(lines, "\n") + "\n")
}

func TestCount(t *testing.T) {
	for _, c := range []struct {
		name     string
		events   []string
		passed   int
		failures []string
		skips    map[string]string
	}{
		{"leaves are counted, not their parents", []string{
			`{"Action":"run","Package":"PKG","Test":"TestA"}`,
			`{"Action":"run","Package":"PKG","Test":"TestA/x"}`,
			`{"Action":"pass","Package":"PKG","Test":"TestA/x"}`,
			`{"Action":"pass","Package":"PKG","Test":"TestA"}`,
			`{"Action":"pass","Package":"PKG"}`,
		}, 1, nil, nil},
		{"a failed subtest is one failure", []string{
			`{"Action":"fail","Package":"PKG","Test":"TestA/x"}`,
			`{"Action":"pass","Package":"PKG","Test":"TestA/y"}`,
			`{"Action":"fail","Package":"PKG","Test":"TestA"}`,
			`{"Action":"fail","Package":"PKG"}`,
		}, 1, []string{"TestA/x (a)"}, nil},
		{"a parent that fails by itself counts", []string{
			`{"Action":"pass","Package":"PKG","Test":"TestA/x"}`,
			`{"Action":"fail","Package":"PKG","Test":"TestA"}`,
			`{"Action":"fail","Package":"PKG"}`,
		}, 0 + 1, []string{"TestA (a)"}, nil},
		{"a test that never ended", []string{
			`{"Action":"run","Package":"PKG","Test":"TestA"}`,
			`{"Action":"fail","Package":"PKG"}`,
		}, 0, []string{"TestA (a)"}, nil},
		{"a package that fails without a test", []string{
			`{"Action":"output","Package":"PKG","Output":"panic in TestMain\n"}`,
			`{"Action":"fail","Package":"PKG"}`,
		}, 0, []string{"a"}, nil},
		{"a package that does not build is one failure", []string{
			`{"ImportPath":"PKG [PKG.test]","Action":"build-output","Output":"x.go:1: bad\n"}`,
			`{"ImportPath":"PKG [PKG.test]","Action":"build-fail"}`,
			`{"Action":"fail","Package":"PKG","FailedBuild":"PKG [PKG.test]"}`,
		}, 0, []string{"a"}, nil},
		{"a skip keeps its reason", []string{
			`{"Action":"output","Package":"PKG","Test":"TestA","Output":"=== RUN   TestA\n"}`,
			`{"Action":"output","Package":"PKG","Test":"TestA","Output":"    a_test.go:9: no dummy device\n"}`,
			`{"Action":"output","Package":"PKG","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}`,
			`{"Action":"skip","Package":"PKG","Test":"TestA"}`,
			`{"Action":"pass","Package":"PKG"}`,
		}, 0, nil, map[string]string{"TestA (a)": "no dummy device"}},
		{"a package that its TestMain skips", []string{
			`{"Action":"output","Package":"PKG","Output":"SKIP netns: root\n"}`,
			`{"Action":"output","Package":"PKG","Output":"ok  \tPKG\t0.004s\n"}`,
			`{"Action":"pass","Package":"PKG"}`,
		}, 0, nil, map[string]string{"a": "netns: root"}},
		{"a package without test files is no skip", []string{
			`{"Action":"output","Package":"PKG","Output":"?   \tPKG\t[no test files]\n"}`,
			`{"Action":"skip","Package":"PKG"}`,
		}, 0, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := count(stream(c.events...))
			if err != nil {
				t.Fatal(err)
			}
			var failures []string
			for _, o := range s.failures {
				failures = append(failures, o.name)
			}
			var skips map[string]string
			for _, o := range s.skips {
				if skips == nil {
					skips = map[string]string{}
				}
				skips[o.name] = o.text
			}
			if s.passed != c.passed || !cmp.Equal(failures, c.failures) || !cmp.Equal(skips, c.skips) {
				t.Errorf("passed %d want %d\nfailures %v want %v\nskips %v want %v",
					s.passed, c.passed, failures, c.failures, skips, c.skips)
			}
		})
	}
}

func TestCountRefusesWhatIsNoJSON(t *testing.T) {
	if _, err := count(strings.NewReader("FAIL\tx [setup failed]\n")); err == nil {
		t.Error("no error")
	}
}

func TestRequired(t *testing.T) {
	skipped := summary{skips: []outcome{{"a", "netns: root"}}}
	some := summary{passed: 1, skips: skipped.skips}
	for _, c := range []struct {
		name    string
		s       summary
		require []string
		failed  int
	}{
		{"nothing required", skipped, nil, 0},
		{"lane required and not run", skipped, []string{"root"}, 1},
		{"another lane required", skipped, []string{"unit"}, 0},
		{"lane required and run in part", some, []string{"root"}, 0},
		{"no skip allowed", some, []string{"noskip"}, 1},
	} {
		got := c.s.required("root", c.require)
		if len(got.failures) != c.failed {
			t.Errorf("%s: %d failures, want %d", c.name, len(got.failures), c.failed)
		}
	}
}

func TestLaneOf(t *testing.T) {
	files := []string{"a_test.go"}
	for _, c := range []struct {
		p    goPackage
		want string
	}{
		{goPackage{ImportPath: pkg}, ""},
		{goPackage{ImportPath: pkg, TestGoFiles: files}, "unit"},
		{goPackage{ImportPath: pkg, XTestGoFiles: files, XTestImports: []string{netlab}}, "root"},
		{goPackage{ImportPath: netlab, TestGoFiles: files}, "root"},
		{goPackage{ImportPath: pkg, TestGoFiles: files, TestImports: []string{netlab, vmlab}}, "systemd"},
		{goPackage{ImportPath: vm, TestGoFiles: files}, "vm"},
		{goPackage{ImportPath: cells, TestGoFiles: files, TestImports: []string{vmlab}}, "cells"},
		{goPackage{ImportPath: apps, TestGoFiles: files, TestImports: []string{rig}}, "apps"},
		{goPackage{ImportPath: archtest, TestGoFiles: files}, "lint"},
	} {
		if got := laneOf(c.p); got != c.want {
			t.Errorf("%+v: lane %q, want %q", c.p, got, c.want)
		}
	}
}

func TestLongest(t *testing.T) {
	var lines []string
	for name, seconds := range map[string]string{"a": "4.9", "b": "12.4", "c": "5", "d": "70", "e": "6", "f": "7", "g": "8"} {
		lines = append(lines, `{"Action":"pass","Package":"`+module+"/"+name+`","Elapsed":`+seconds+`}`)
	}
	s, err := count(stream(lines...))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.longest(), "d 70 s, b 12 s, g 8 s, f 7 s, e 6 s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (summary{times: []timed{{"a", time.Second}}}).longest(); got != "" {
		t.Errorf("a second is long: %q", got)
	}
}
