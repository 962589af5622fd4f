package darwin

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer/host"
)

const sysctlPath = "/usr/sbin/sysctl"

// Boot reads which boot this is.
type Boot struct{ Run host.Runner }

// ID is the kernel's name for this boot. It does not depend on the clock, which may jump.
func (b Boot) ID(ctx context.Context) (string, error) {
	id, err := b.sysctl(ctx, "kern.bootsessionuuid")
	if err == nil && len(id) < 8 {
		err = fmt.Errorf("sysctl kern.bootsessionuuid: %q is no boot id", id)
	}
	return id, err
}

// Time is when the kernel started, by the clock of now: where the clock was set since, this moved too.
func (b Boot) Time(ctx context.Context) (time.Time, error) {
	text, err := b.sysctl(ctx, "kern.boottime")
	if err != nil {
		return time.Time{}, err
	}
	return parseBootTime(text)
}

func (b Boot) sysctl(ctx context.Context, name string) (string, error) {
	r, err := b.Run.Run(ctx, host.Command{Path: sysctlPath, Args: []string{"-n", name}, Reads: true, Timeout: 5 * time.Second})
	return strings.TrimSpace(string(r.Stdout)), err
}

// parseBootTime reads "{ sec = 1760000000, usec = 123456 } Thu Oct  9 10:13:20 2025".
func parseBootTime(text string) (time.Time, error) {
	number := func(name string) (int64, error) {
		_, rest, ok := strings.Cut(text, name+" = ")
		end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
		if !ok || end < 1 {
			return 0, fmt.Errorf("kern.boottime: no %s in %q", name, text)
		}
		return strconv.ParseInt(rest[:end], 10, 64)
	}
	sec, err := number("{ sec")
	if err != nil {
		return time.Time{}, err
	}
	usec, err := number(" usec")
	return time.Unix(sec, usec*1000), err
}

// Stamp is what a job logs when it is ready: which boot it is, and how long it runs. Log lines of
// another boot are told by the id, whatever the clock did meanwhile.
func (b Boot) Stamp(ctx context.Context) []any {
	id, err := b.ID(ctx)
	if err != nil {
		return nil
	}
	at, err := b.Time(ctx)
	if err != nil {
		return []any{"boot", id}
	}
	return []any{"boot", id, "since_boot", time.Since(at).Round(time.Millisecond).String()}
}

// ReadyAt finds in the log of a job when its part was ready in this boot; false when no line says so.
func ReadyAt(log []byte, boot string) (since time.Duration, found bool) {
	for line := range strings.Lines(string(log)) {
		words := map[string]string{}
		for _, w := range strings.Fields(line) {
			if key, value, ok := strings.Cut(w, "="); ok {
				words[key] = value
			}
		}
		if words["msg"] != "ready" || words["boot"] != boot {
			continue
		}
		if d, err := time.ParseDuration(words["since_boot"]); err == nil && !found {
			since, found = d, true // the first of a boot: what comes later was started again
		}
	}
	return since, found
}
