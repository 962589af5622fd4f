package archtest

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// cases are the failures that verify/CASES.md has to speak of. The numbers between were no failures of anything
// that this project does.
var cases = strings.Fields(`
B01 B02 B03 B04 B05 B06 B07 B08 B09 B10 B11 B13 B17 B19 B20 B21 B22 B23 B24 B25 B26 B27 B28 B30 B32 B33 B34 B35 B37 B38 B39 B40
B42 B43 B45 B47 B48 B49 B50 B52 B53 B55 B58 B59 B60 B61 B62 B65 B66 B68 B69 B70 B71 B73 B74 B75 B76 B77
B80 B81 B82 B84 B85 B88 B89 B93 B94 B97
B98 B99 B100 B101 B102 B103 B104 B105 B106 B108 B109 B110 B112 B113 B114 B115 B116 B117 B118 B119 B120 B123 B124
B125 B126 B129 B130 B132`)

const (
	casesFile = "verify/CASES.md"
	macScript = "packaging/darwin/verify-on-a-mac.sh"
)

// TestCasesAreTested: every case has a row, in order; every test that a row names exists, and the script for a person
// with a Mac has the case's number where the row names the script. A row without either says in words why.
func TestCasesAreTested(t *testing.T) {
	var table, script string
	tests := map[string]bool{} // "folder TestName"
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, f := range tree(t) {
		switch {
		case f.path == casesFile:
			table = string(f.text)
		case f.path == macScript:
			script = string(f.text)
		case strings.HasSuffix(f.path, "_test.go"):
			for _, m := range function.FindAllStringSubmatch(string(f.text), -1) {
				tests[path.Dir(f.path)+" "+m[1]] = true
			}
		}
	}
	named := regexp.MustCompile(`[a-z0-9/]+ (?:Test|Fuzz)\w+`)
	var rows []string
	for line := range strings.Lines(table) {
		columns := strings.Split(line, "|")
		if len(columns) != 5 || !strings.HasPrefix(columns[1], " B") {
			continue
		}
		id, answer := strings.TrimSpace(columns[1]), columns[3]
		rows = append(rows, id)
		found := named.FindAllString(answer, -1)
		for _, name := range found {
			if !tests[name] {
				t.Errorf("%s: there is no %s", id, name)
			}
		}
		switch byHand := strings.Contains(answer, "script"); {
		case byHand && !regexp.MustCompile(id+`\b`).MatchString(script):
			t.Errorf("%s: not in %s", id, macScript)
		case !byHand && len(found) == 0:
			t.Errorf("%s: neither a test nor the script", id)
		}
	}
	if !slices.Equal(rows, cases) {
		t.Errorf("%s has rows %v, want %v", casesFile, rows, cases)
	}
}
