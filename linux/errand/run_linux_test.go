package errand

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestMain makes the test binary the program that runs errands, too.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != Verb {
		os.Exit(m.Run())
	}
	err := Child(os.Args[2:], Table{
		"kept": func(json.RawMessage, []*os.File) (*os.File, error) {
			cmd := exec.Command("/bin/sleep", "30")
			cmd.Stderr, cmd.ExtraFiles = os.Stderr, []*os.File{os.NewFile(pairFD, "pair")}
			if err := cmd.Start(); err != nil {
				return nil, err
			}
			os.Exit(0)
			return nil, nil
		},
		"flood": func(json.RawMessage, []*os.File) (*os.File, error) {
			os.Stderr.Write(bytes.Repeat([]byte("x"), 8<<20))
			os.Exit(1)
			return nil, nil
		},
	})
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// TestKept: another process has the child's descriptors and outlives it. The errand ends with its caller's time all
// the same.
func TestKept(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	start := time.Now()
	_, err := Run(ctx, Spec{Name: "kept"})
	if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > 20*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
}

// TestFlood: what a child says is taken from it to the end, and little of it is kept.
func TestFlood(t *testing.T) {
	_, err := Run(t.Context(), Spec{Name: "flood"})
	if err == nil || !strings.Contains(err.Error(), strings.Repeat("x", maxWords)) || len(err.Error()) > 2*maxWords {
		t.Errorf("%.1000v", err)
	}
	var w words
	for range 100 {
		if n, err := w.Write(make([]byte, 1000)); n != 1000 || err != nil {
			t.Fatal(n, err)
		}
	}
	if cap(w.text) > 2*maxWords {
		t.Errorf("%d octets are held", cap(w.text))
	}
}
