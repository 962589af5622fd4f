package procs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"time"
)

type model map[int]Info

func (m model) Info(pid int) (Info, error) {
	i, ok := m[pid]
	if !ok {
		return i, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	return i, nil
}

func (m model) Wait(context.Context, int, string) error { return nil }

func TestSame(t *testing.T) {
	m := model{7: {PID: 7, Start: "1.000001"}}
	for start, want := range map[string]bool{"1.000001": true, "1.000002": false} {
		if got, err := Same(m, 7, start); got != want || err != nil {
			t.Errorf("%s: %v %v", start, got, err)
		}
	}
	if got, err := Same(m, 8, "1.000001"); got || err != nil {
		t.Errorf("gone: %v %v", got, err)
	}
}

// TestAbove goes up to launchd and not further, and does not hang on a circle.
func TestAbove(t *testing.T) {
	m := model{9: {PID: 9, Parent: 8}, 8: {PID: 8, Parent: 7}, 7: {PID: 7, Parent: 1}, 1: {PID: 1}, 20: {PID: 20, Parent: 21}, 21: {PID: 21, Parent: 20}}
	var seen []int
	visit := func(i Info) bool { seen = append(seen, i.PID); return i.PID == 7 && len(seen) > 5 }
	if err := Above(m, 9, visit); err != nil || !slices.Equal(seen, []int{9, 8, 7}) {
		t.Errorf("%v %v", seen, err)
	}
	if err := Above(m, 20, func(Info) bool { return false }); err != nil {
		t.Error(err)
	}
	if err := Above(m, 5, visit); err == nil {
		t.Error("a process that is not there")
	}
}

// TestPoll: who waits is woken when another process has the number.
func TestPoll(t *testing.T) {
	m := model{7: {PID: 7, Start: "b"}}
	if err := poll(t.Context(), m, 7, "a", time.Hour); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := poll(ctx, m, 7, "b", time.Hour); err == nil {
		t.Error("a process that lives is waited for")
	}
}

// TestHold: a number that was given away while it was looked at, and a connection that nobody has any
// more, are no peer.
func TestHold(t *testing.T) {
	m := model{7: {PID: 7, Start: "a"}, 8: {PID: 8, Start: "b"}}
	for name, c := range map[string]struct {
		answers []Cred
		ok      bool
	}{
		"lives":      {[]Cred{{UID: 501, PID: 7}, {UID: 501, PID: 7}}, true},
		"gone":       {[]Cred{{UID: 501, PID: 9}, {UID: 501, PID: 9}}, false},
		"given away": {[]Cred{{UID: 501, PID: 7}, {UID: 501, PID: 8}}, false},
		"closed":     {[]Cred{{UID: 501, PID: 7}}, false},
		"never":      {nil, false},
	} {
		n := 0
		cred, info, err := Hold(m, func() (Cred, error) {
			if n++; n > len(c.answers) {
				return Cred{}, errors.New("not connected")
			}
			return c.answers[n-1], nil
		})
		if (err == nil) != c.ok || c.ok && (cred.UID != 501 || info.Start != "a") {
			t.Errorf("%s: %+v %+v %v", name, cred, info, err)
		}
	}
}
