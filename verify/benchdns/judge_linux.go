package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// latencyLimit is how many times as long as NSD's our single query may take, at the median.
const latencyLimit = 1.1

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
	fmt.Fprintln(w, "server\tqueries/s\tus of core\tbusy\tp50 us\tlost\tmemory\tminhost over it\tby core\tat least\t")
	var missed []error
	for _, c := range all {
		want := "-"
		if c.target > 0 {
			want = fmt.Sprintf("%.2f", c.target)
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%.0f%%\t%.1f\t%d\t%s\t%.2f\t%.2f\t%s\t\n", c.label, median(c.rates), median(c.costs),
			median(c.busy()), median(c.p50), c.lost, c.resident(), median(ratios(all[0].rates, c.rates)), c.cost(all[0]), want)
		for _, o := range all {
			if got := c.cost(o); o.name == ours && c.target > 0 && got < c.target {
				missed = append(missed, fmt.Errorf("%s: %.2f times %s by core, at least %.2f", o.label, got, c.label, c.target))
			}
		}
		if latency := median(ratios(all[0].p50, c.p50)); c.name == "nsd" && latency > latencyLimit {
			missed = append(missed, fmt.Errorf("a single query takes %.2f times as long as %s, at most %.2f", latency, c.label, latencyLimit))
		}
	}
	w.Flush()
	for _, c := range all {
		if len(c.late) > 0 {
			slices.Sort(c.late)
			fmt.Fprintf(out, "%s: %.0f changes a second, %.0f zones a second answered; a change is answered %v after its write at the median, %v at p99\n",
				c.label, float64(time.Second/changesEvery), median(c.zones), c.late[len(c.late)/2], c.late[len(c.late)*99/100])
		}
	}
	return errors.Join(missed...)
}

// cost is what a query costs a server's core, as a multiple of what it costs other's.
func (c *contender) cost(other *contender) float64 { return median(ratios(c.costs, other.costs)) }

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
