package standalone

import (
	"slices"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	var b backoff
	var got []time.Duration
	for range 9 {
		got = append(got, b.after(time.Second))
	}
	got = append(got, b.after(backoffReset), b.after(0))
	ms := time.Millisecond
	want := []time.Duration{0, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 5 * time.Second, 5 * time.Second, 0, 100 * ms}
	if !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

func TestBootStep(t *testing.T) {
	s := &BootStep{Reason: "PID 1 is sh, not systemd"}
	obs, err := s.Probe(t.Context())
	if err != nil || obs.State.String() != "blocked" || obs.Detail == "" || obs.Loses == "" || obs.Next == "" || s.Required() {
		t.Errorf("%+v, %v", obs, err)
	}
}
