package lease

import (
	"errors"
	"fmt"
	"time"
)

// MaxTerm is the longest that a timed rule may last.
const MaxTerm = 365 * 24 * time.Hour

// Term reads when a rule ends that is made now: so many seconds later, or at a time of RFC 3339. With
// neither it never ends, and the time is zero. The result has whole milliseconds, which is what the kernel
// counts in.
func Term(seconds int, until string, now time.Time) (time.Time, error) {
	switch {
	case seconds == 0 && until == "":
		return time.Time{}, nil
	case seconds != 0 && until != "":
		return time.Time{}, errors.New("seconds and until contradict each other: give one")
	case seconds != 0:
		if seconds < 1 || seconds > int(MaxTerm/time.Second) {
			return time.Time{}, fmt.Errorf("seconds %d is not from 1 to %d", seconds, int(MaxTerm/time.Second))
		}
		return instant(now.Add(time.Duration(seconds) * time.Second)), nil
	}
	end, err := parseInstant(until)
	switch {
	case err != nil:
		return time.Time{}, err
	case !end.After(now):
		return time.Time{}, fmt.Errorf("until %s is over: it is %s", until, now.UTC().Format(time.RFC3339))
	case end.Sub(now) > MaxTerm:
		return time.Time{}, fmt.Errorf("until %s is more than a year away", until)
	}
	return end, nil
}

// instant makes times comparable with ==: UTC, whole milliseconds, no monotonic reading.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

func parseInstant(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("until %q is no time like 2026-01-02T15:04:05Z", s)
	}
	return instant(t), nil
}

// Ends returns the end of a rule as Term takes it, "" for one that never ends.
func (r Rule) Ends() string {
	if r.Until.IsZero() {
		return ""
	}
	return r.Until.Format(time.RFC3339Nano)
}

// outlasts says whether r never ends before o does.
func (r Rule) outlasts(o Rule) bool {
	return r.Until.IsZero() || !o.Until.IsZero() && !r.Until.Before(o.Until)
}

// At returns what of a canonical policy is left at a time, and the rules that have ended by then. Without any rule
// left egress is deny.
func (p Policy) At(t time.Time) (left Policy, ended []Rule) {
	left = p
	left.Rules = nil
	for _, r := range p.Rules {
		if r.Until.IsZero() || r.Until.After(t) {
			left.Rules = append(left.Rules, r)
			continue
		}
		ended = append(ended, r)
	}
	if p.Egress == Rules && len(left.Rules) == 0 && len(ended) > 0 {
		left.Egress = Deny
	}
	return left, ended
}

// NextEnd is when the first of its rules ends; zero when none ever does.
func (p Policy) NextEnd() time.Time {
	var first time.Time
	for _, r := range p.Rules {
		if !r.Until.IsZero() && (first.IsZero() || r.Until.Before(first)) {
			first = r.Until
		}
	}
	return first
}
