package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"text/tabwriter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "dnsconf:", err)
		os.Exit(1)
	}
}

// contestant is a server that runs.
type contestant struct {
	name, addr string
	stop       func()
}

// run puts all checks to all servers, ours first, and prints what they do not all pass.
func run(ctx context.Context, out io.Writer) error {
	folder, err := os.MkdirTemp("", "dnsconf")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	addr, stop, err := ours(ctx, folder)
	if err != nil {
		return err
	}
	all := []contestant{{"minhost", addr, stop}}
	others, err := startPeers(ctx, folder, out)
	all = append(all, others...)
	defer func() {
		for _, c := range all {
			c.stop()
		}
	}()
	if err != nil {
		return err
	}
	return compare(ctx, out, all)
}

func compare(ctx context.Context, out io.Writer, all []contestant) error {
	passed := make([]int, len(all))
	var failed []string
	var differences strings.Builder
	list := checks()
	for _, c := range list {
		var faults []string
		for i, s := range all {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			err := c.run(s.addr)
			if err == nil {
				passed[i]++
				continue
			}
			faults = append(faults, fmt.Sprintf("  %s: %v\n", s.name, err))
			if i == 0 {
				failed = append(failed, c.name)
			}
		}
		if len(faults) > 0 {
			fmt.Fprintf(&differences, "%s\n%s", c.name, strings.Join(faults, ""))
		}
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for i, s := range all {
		fmt.Fprintf(w, "%s\t%d of %d\n", s.name, passed[i], len(list))
	}
	w.Flush()
	fmt.Fprintf(out, "\nDifferences:\n%s", differences.String())
	if len(failed) > 0 {
		return errors.New("ours fails: " + strings.Join(failed, "; "))
	}
	return nil
}
