package main

import (
	"fmt"
	"slices"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
)

// maxRefusals is what fits on a screen beside the program's own last lines.
const maxRefusals = 20

// refusalLines says what subject was refused, one line a destination, most recent last, and
// of many the most recent.
func refusalLines(refusals []api.Refusal, subject string) []string {
	merged := mergeRefusals(refusals)
	var lines []string
	if left := len(merged) - maxRefusals; left > 0 {
		lines = append(lines, fmt.Sprintf("%d more destinations were refused before these", left))
		merged = merged[left:]
	}
	for _, r := range merged {
		lines = append(lines, client.Sentence(r, subject))
	}
	return lines
}

// mergeRefusals adds up the counts of one destination; its place is that of the last.
func mergeRefusals(refusals []api.Refusal) []api.Refusal {
	var merged []api.Refusal
	for _, r := range refusals {
		r.Count = max(r.Count, 1)
		same := func(m api.Refusal) bool {
			m.Count, m.Time = r.Count, r.Time
			return m == r
		}
		if i := slices.IndexFunc(merged, same); i >= 0 {
			r.Count += merged[i].Count
			merged = slices.Delete(merged, i, i+1)
		}
		merged = append(merged, r)
	}
	return merged
}
