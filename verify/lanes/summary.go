package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// outcome is a failed or skipped test: its name with its package, and what it printed or why.
type outcome struct {
	name, text string
}

// summary is what one lane did.
type summary struct {
	passed   int
	failures []outcome
	skips    []outcome
	times    []timed // of each package
}

// timed is what a package took.
type timed struct {
	name string
	took time.Duration
}

func (s summary) ran() int { return s.passed + len(s.failures) }

func (s summary) plus(o summary) summary {
	return summary{
		passed:   s.passed + o.passed,
		failures: slices.Concat(s.failures, o.failures),
		skips:    slices.Concat(s.skips, o.skips),
		times:    slices.Concat(s.times, o.times),
	}
}

// required turns skips into failures where REQUIRE forbids them: all of them with "noskip", and
// when a required lane ran nothing, the reasons why.
func (s summary) required(lane string, require []string) summary {
	if slices.Contains(require, "noskip") || (s.ran() == 0 && slices.Contains(require, lane)) {
		for _, o := range s.skips {
			s.failures = append(s.failures, outcome{o.name, "skipped, but REQUIRE forbids it: " + o.text + "\n"})
		}
		s.skips = nil
	}
	return s
}

// longest names the packages that took most of the time, at the most five and none of under five seconds.
func (s summary) longest() string {
	times := slices.SortedFunc(slices.Values(s.times), func(a, b timed) int { return cmp.Compare(b.took, a.took) })
	var out []string
	for _, t := range times[:min(5, len(times))] {
		if t.took >= 5*time.Second {
			out = append(out, fmt.Sprintf("%s %.0f s", t.name, t.took.Seconds()))
		}
	}
	return strings.Join(out, ", ")
}
