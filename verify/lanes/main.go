// Command lanes runs test lanes and counts what happened, for make test and continuous integration.
//
//	go run ./verify/lanes [unit] [race] [root] [systemd] [vm] [cells] [apps] [lint]
//
// It prints one line a lane, the packages that took longest, every skip with its reason, the tail of every
// failure and a closing line "N passed, N failed, N skipped". The exit status is 1 when something failed, or when a lane
// that the variable REQUIRE lists (comma separated) could not run; with "noskip" in REQUIRE a
// skipped test counts as failed.
//
// It is for the project's own tests only, it does not retry a test and it does not hide one.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	// A signal that this program was started to ignore (nohup) would be ignored by every test's children
	// too. One that is caught here is not inherited.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGQUIT)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := runLanes(ctx, os.Stdout, os.Args[1:], strings.Split(os.Getenv("REQUIRE"), ","))
	stop()
	os.Exit(code)
}

// lane is one kind of test. run returns what happened; an error means that the lane itself broke.
type lane struct {
	name string
	run  func(context.Context, io.Writer) (summary, error)
}

func runLanes(ctx context.Context, w io.Writer, names, require []string) int {
	all := lanes()
	if len(names) == 0 {
		for _, l := range all {
			names = append(names, l.name)
		}
	}
	var total summary
	for _, name := range names {
		i := slices.IndexFunc(all, func(l lane) bool { return l.name == name })
		if i < 0 {
			fmt.Fprintf(w, "no lane %s\n", name)
			return 2
		}
		total = total.plus(runLane(ctx, w, all[i], require))
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", total.passed, len(total.failures), len(total.skips))
	if len(total.failures) > 0 {
		return 1
	}
	return 0
}

// runLane runs one lane, applies REQUIRE to it and prints it.
func runLane(ctx context.Context, w io.Writer, l lane, require []string) summary {
	start := time.Now()
	s, err := l.run(ctx, w)
	if err != nil {
		s.failures = append(s.failures, outcome{name: "lane " + l.name, text: err.Error()})
	}
	if s.ran() == 0 && len(s.skips) == 0 {
		s.failures = append(s.failures, outcome{name: "lane " + l.name, text: "no test was found: a lane that runs nothing proves nothing"})
	}
	s = s.required(l.name, require)
	for _, o := range s.failures {
		fmt.Fprintf(w, "FAIL %s: %s\n%s", l.name, o.name, indent(o.text))
	}
	for _, o := range s.skips {
		fmt.Fprintf(w, "SKIP %s: %s: %s\n", l.name, o.name, o.text)
	}
	if long := s.longest(); long != "" {
		fmt.Fprintf(w, "LONG %s: %s\n", l.name, long)
	}
	fmt.Fprintf(w, "LANE %s: %d passed, %d failed, %d skipped, %d s\n",
		l.name, s.passed, len(s.failures), len(s.skips), int(time.Since(start).Seconds()+0.5))
	return s
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}
