// Package golden compares what is rendered with files that are committed, and writes them anew when a test runs
// with -update.
//
// It is for tests only. It does not decide what a difference means: whoever runs -update reads it.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Check fails the test when the file does not hold got.
func Check(t testing.TB, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what is rendered now (go test -update writes it): -want +got\n%s", path, diff)
	}
}
