package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestDocumented holds README and manual page to the verbs and flags that the program has.
func TestDocumented(t *testing.T) {
	readme := text(t, "../../README.md")
	manual := text(t, "../../packaging/man/minhost.8")
	for _, cmd := range verbs(newRootCommand(newLab(t, nil).env)) {
		verb := strings.TrimPrefix(cmd.CommandPath(), "minhost ")
		top, _, _ := strings.Cut(verb, " ")
		if !strings.Contains(readme, "| `"+top) {
			t.Errorf("README.md has no row for %s", verb)
		}
		if !strings.Contains(manual, ".It Cm "+top+"\n") {
			t.Errorf("minhost.8 has no entry for %s", verb)
		}
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" && !strings.Contains(manual, "Fl -"+f.Name) {
				t.Errorf("minhost.8 does not name --%s of %s", f.Name, verb)
			}
		})
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: short text %q", verb, cmd.Short)
		}
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// verbs lists what a user can see, groups and leaves.
func verbs(cmd *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			all = append(append(all, c), verbs(c)...)
		}
	}
	return all
}
