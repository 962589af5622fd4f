package linux

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// A kernel that lacks something is asked only while there is no table; each thing is named.
func TestCapable(t *testing.T) {
	lacks := func(what ...string) func(context.Context) ([]string, error) {
		return func(context.Context) ([]string, error) { return what, nil }
	}
	fails := func(context.Context) ([]string, error) { return nil, errors.New("no namespace") }
	if err := errors.Join(capable(t.Context(), true, fails), capable(t.Context(), false, lacks())); err != nil {
		t.Error(err)
	}
	err := capable(t.Context(), false, lacks("no this", "no that"))
	if !errors.Is(err, ErrIncapable) || !strings.Contains(err.Error(), "no this; no that") {
		t.Error(err)
	}
	if err := capable(t.Context(), false, fails); err == nil || errors.Is(err, ErrIncapable) {
		t.Errorf("not tried: %v", err)
	}
}
