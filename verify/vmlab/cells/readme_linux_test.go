package cells

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the table of cells into README.md, with today's date")

const (
	readme = "../../../README.md"
	begin  = "<!-- cells: written by make test-vm-all -->\n"
	end    = "<!-- cells end -->\n"
)

// table is the README's, without its date.
func table(result func(cell) string) string {
	var b strings.Builder
	fmt.Fprintln(&b, "| Debian | network | systemd-resolved | firewall beside | sees names | result |")
	fmt.Fprintln(&b, "|---|---|---|---|---|---|")
	sees := map[string]string{"stub": "all", "without stub": "glibc, Python, curl", "none": "who asks 127.0.0.1:15353"}
	for _, c := range all() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", c.suite, c.manager, c.resolver, c.firewall, sees[c.resolver], result(c))
	}
	return b.String()
}

// write puts what ran into the README, when asked to.
func write(t *testing.T, done map[cell]string) {
	if !*update {
		return
	}
	b, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", readme)
	}
	text := table(func(c cell) string { return cmp.Or(done[c], "**fails**") }) + "\nRun on " + time.Now().UTC().Format(time.DateOnly) + ".\n"
	if err := os.WriteFile(readme, []byte(before+begin+text+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestReadme: the README's table has these cells and no others.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(table(func(cell) string { return "works" })) {
		if !strings.Contains(string(b), line) {
			t.Errorf("README.md lacks: %s", line)
		}
	}
}
