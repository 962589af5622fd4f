package mac

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var cases = strings.Fields("B98 B99 B100 B101 B102 B103 B104 B105 B106 B108 B109 B110 B112 B113 B114 B115 B116 B117 B118 B119 B120 B123 B124")

const macScript = "../../../packaging/darwin/verify-on-a-mac.sh"

// TestCasesAreTested: every case has a row, in order; every test that a row names exists, and the script for
// a Mac has its number where the row says so.
func TestCasesAreTested(t *testing.T) {
	text, err := os.ReadFile("CASES.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(macScript)
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`([a-z0-9/]+) (Test[A-Za-z0-9]+)`)
	i := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		f := strings.Split(line, "|")
		if len(f) != 5 || !strings.HasPrefix(f[1], " B") {
			continue
		}
		id := strings.TrimSpace(f[1])
		if i >= len(cases) || id != cases[i] {
			t.Errorf("row %s stands where %v was expected", id, cases[min(i, len(cases)-1)])
		}
		i++
		tests, byHand := named.FindAllStringSubmatch(f[3], -1), strings.Contains(f[3], "script")
		if len(tests) == 0 && !byHand {
			t.Errorf("%s: neither a test nor a line of the script", id)
		}
		if byHand && !regexp.MustCompile(id+`\b`).Match(script) {
			t.Errorf("the script has no %s", id)
		}
		for _, m := range tests {
			if !exists(t, filepath.Join("../../..", m[1]), m[2]) {
				t.Errorf("%s: no %s in %s", id, m[2], m[1])
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
		if b, err := os.ReadFile(f); err != nil || strings.Contains(string(b), "\nfunc "+name+"(") {
			return err == nil
		}
	}
	return false
}
