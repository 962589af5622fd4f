package vmlab

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// cases are the failures that the table has to speak of.
var cases = strings.Fields("B42 B43 B45 B47 B48 B49 B50 B52 B53 B55 B58 B59 B60 B61 B62 B65 B66 B68 B69 B70 B71 B73 B74 B75 B76 B77")

// TestCasesAreTested: every case has a row, in order, and every test that a row names exists.
func TestCasesAreTested(t *testing.T) {
	text, err := os.ReadFile("CASES.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`([a-z0-9/]+) (Test[A-Za-z0-9]+)`)
	var rows []string
	for line := range strings.Lines(string(text)) {
		f := strings.Split(line, "|")
		if len(f) != 5 || !strings.HasPrefix(f[1], " B") {
			continue
		}
		rows = append(rows, strings.TrimSpace(f[1]))
		tests := named.FindAllStringSubmatch(f[3], -1)
		if len(tests) == 0 {
			t.Errorf("%s names no test", line)
		}
		for _, m := range tests {
			if !exists(t, filepath.Join("../..", m[1]), m[2]) {
				t.Errorf("%s: no %s in %s", rows[len(rows)-1], m[2], m[1])
			}
		}
	}
	if !slices.Equal(rows, cases) {
		t.Errorf("rows %v, want %v", rows, cases)
	}
}

func exists(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(dir + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(f string) bool {
		b, err := os.ReadFile(f)
		return err == nil && strings.Contains(string(b), "\nfunc "+name+"(")
	})
}
