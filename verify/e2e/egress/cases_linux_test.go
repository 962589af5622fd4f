package egress

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// cases are the failures that the table has to speak of; the numbers between are macOS's and DNS's.
var cases = strings.Fields("B01 B02 B03 B04 B05 B06 B07 B08 B09 B10 B11 B13 B17 B19 B20 B21 B22 B23 B24 B25 B26 B27 B28 B30 B32 B33 B34 B35 B37 B38 B39 B40")

// TestCasesAreTested: every case has a row, in order, and every test that a row names exists.
func TestCasesAreTested(t *testing.T) {
	text, err := os.ReadFile("CASES.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`([a-z0-9/]+) (Test[A-Za-z0-9]+)`)
	i := 0
	for _, line := range strings.Split(string(text), "\n") {
		f := strings.Split(line, "|")
		if len(f) != 5 || !strings.HasPrefix(f[1], " B") {
			continue
		}
		if id := strings.TrimSpace(f[1]); i >= len(cases) || id != cases[i] {
			t.Errorf("row %s stands where %v was expected", id, cases[min(i, len(cases)-1)])
		}
		i++
		tests := named.FindAllStringSubmatch(f[3], -1)
		if len(tests) == 0 {
			t.Errorf("%s names no test", line)
		}
		for _, m := range tests {
			if !exists(t, filepath.Join("../../..", m[1]), m[2]) {
				t.Errorf("%s: no %s in %s", cases[min(i, len(cases))-1], m[2], m[1])
			}
		}
	}
	if i != len(cases) {
		t.Errorf("%d rows, want %d", i, len(cases))
	}
}

func exists(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(dir + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
