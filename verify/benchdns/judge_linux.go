package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// Our medians against another server's.
const (
	latencyLimit = 1.1 // single-query p50 over NSD's
)

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}

// judge prints the medians and the ratios round by round, and returns what was missed. What counts is
// queries per second of the core's time. The rate by the clock is that of the client where a server's core
// is busy for less than nearly all of the time: over loopback a sender does the receiver's work in the
// kernel too, so asking and hearing costs twice what answering does; and it says who else used the cores.
func judge(out io.Writer, all []*contender) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "server\tqueries/s\tus of core\tbusy\tp50 us\tlost\tzones/s\tmemory\tminhost over it\tby core\tat least\t")
	ours := all[0]
	var missed []error
	for _, c := range all {
		ratio := median(ratios(ours.rates, c.rates))
		cost := median(ratios(c.costs, ours.costs))
		want := "-"
		if c.target > 0 {
			want = fmt.Sprintf("%.2f", c.target)
			if cost < c.target {
				missed = append(missed, fmt.Errorf("%.2f times %s by core, at least %.2f", cost, c.label, c.target))
			}
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%.0f%%\t%.1f\t%d\t%.0f\t%s\t%.2f\t%.2f\t%s\t\n", c.label, median(c.rates), median(c.costs), median(c.busy()), median(c.p50), c.lost, median(c.zones), c.resident(), ratio, cost, want)
		if latency := median(ratios(ours.p50, c.p50)); c.name == "nsd" && latency > latencyLimit {
			missed = append(missed, fmt.Errorf("a single query takes %.2f times as long as %s, at most %.2f", latency, c.label, latencyLimit))
		}
	}
	w.Flush()
	return errors.Join(missed...)
}

// busy is how much of its core a server used in each round, in hundredths.
func (c *contender) busy() (all []float64) {
	for i := range min(len(c.rates), len(c.costs)) {
		all = append(all, c.rates[i]*c.costs[i]/10000)
	}
	return all
}

// ratios divides two servers' rounds one by one: what else the machine did in a round met both.
func ratios(a, b []float64) []float64 {
	var all []float64
	for i := range min(len(a), len(b)) {
		all = append(all, a[i]/b[i])
	}
	return all
}
