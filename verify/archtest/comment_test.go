package archtest

import (
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	sentenceEnd = regexp.MustCompile(`[.!?](\s|\)|$)`)
	negation    = regexp.MustCompile(`(?i)\b(not|no|never|nothing|none|neither|nor|cannot)\b|n't\b`)
)

// commentFault says what is wrong with a package comment; "" when nothing is.
func commentFault(comment string) string {
	switch {
	case strings.TrimSpace(comment) == "":
		return "no package comment"
	case len(sentenceEnd.FindAllString(comment, -1)) < 2:
		return "the package comment has fewer than two sentences"
	case !negation.MatchString(comment):
		return "the package comment does not say what the package does not do"
	}
	return ""
}

// TestPackageComments holds every folder with Go files to a comment in one of its files. A folder
// of tests alone may have it in a test file.
func TestPackageComments(t *testing.T) {
	comments := map[string]string{}
	for _, s := range tree(t) {
		if !s.isGo() {
			continue
		}
		dir := path.Dir(s.path)
		file, err := parser.ParseFile(token.NewFileSet(), s.path, s.text, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Error(err)
			continue
		}
		comments[dir] += "" // the folder is there
		if file.Doc != nil {
			comments[dir] += file.Doc.Text() + "\n"
		}
	}
	for dir, comment := range comments {
		if fault := commentFault(comment); fault != "" {
			t.Errorf("%s: %s", dir, fault)
		}
	}
	if len(comments) < 10 {
		t.Fatalf("only %d packages were read", len(comments))
	}
}

func TestCommentFault(t *testing.T) {
	for comment, bad := range map[string]bool{
		"": true,
		"Package a renders units. It starts nothing.": false,
		"Package a renders units, not services.":      true, // one sentence
		"Package a renders units. It is fast.":        true, // no negation
		"Package a, see b.c.\n\nIt isn't a shell.":    false,
	} {
		if got := commentFault(comment); (got != "") != bad {
			t.Errorf("%q: %q", comment, got)
		}
	}
}

// TestFaultsAreFound plants one mistake of each kind.
func TestFaultsAreFound(t *testing.T) {
	const head = "package a\n\n"
	for _, c := range []struct {
		kind, path, text string
	}{
		{"init", "a/a.go", head + "func init() {}\n"},
		{"exit", "a/a.go", head + "import \"os\"\n\nfunc f() { os.Exit(1) }\n"},
		{"exit", "cmd/minhost/ls.go", "package main\n\nimport \"log\"\n\nfunc f() { log.Fatalf(\"\") }\n"},
		{"goos", "linux/a.go", head + "import \"runtime\"\n\nvar x = runtime.GOOS\n"},
		{"shell", "a/a.go", head + "var argv = []string{\"/bin/sh\", \"-c\", \"true\"}\n"},
		{"shell", "a/a.go", head + "var line = \"sudo sh -c true\"\n"},
		{"format", "a/a.go", head + "var  x = 1\n"},
		{"length", "a/a.go", head + strings.Repeat("// line\n", maxLines)},
		{"func", "a/a.go", head + "func f() {\n" + strings.Repeat("\tf()\n", maxFunc) + "}\n"},
		{"machine", "README.md", "see /wo" + "rk/main\n"},
		{"machine", "a/a_test.go", head + "const x = \"/ro" + "ot/go\"\n"},
		{"", "cmd/minhost/main.go", "package main\n\nimport \"os\"\n\nfunc main() { os.Exit(0) }\n"},
		{"", "a/a.go", head + "// a network/wo" + "rk/shop and the option -c\nvar x = \"-c\"\n"},
		{"", "a/a_test.go", head + "var argv = []string{\"sh\", \"-c\", \"true\"}\n"},
	} {
		var kinds []string
		for _, f := range faults(source{c.path, []byte(c.text)}) {
			kinds = append(kinds, strings.Split(f, ": ")[1])
		}
		var want []string
		if c.kind != "" {
			want = []string{c.kind}
		}
		if !slices.Equal(kinds, want) {
			t.Errorf("%s %q: found %v, want %v", c.path, c.text, kinds, want)
		}
	}
}
