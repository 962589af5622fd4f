package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxLines is the length of a file that is still read in one go, maxFunc that of a function.
const (
	maxLines = 250
	maxFunc  = 60
)

// source is one file of the tree, its path relative to the root.
type source struct {
	path string
	text []byte
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// tree reads every file of the project but what git and builds leave behind.
func tree(t *testing.T) []source {
	t.Helper()
	top := root(t)
	var files []source
	err := filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "dist"):
			return filepath.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, path)
		files = append(files, source{filepath.ToSlash(rel), text})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func (s source) isGo() bool {
	return strings.HasSuffix(s.path, ".go") && !strings.Contains(s.path, "/testdata/")
}
func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

var generatedLine = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// machinePath finds folders of one machine; in two parts, so that it does not find itself.
var machinePath = regexp.MustCompile(`(^|[^A-Za-z0-9_.-])/(wo` + `rk|ro` + `ot)/`)

// faults are the broken house rules of one file, one line each.
func faults(s source) []string {
	var found []string
	if loc := machinePath.FindIndex(s.text); loc != nil {
		found = append(found, fmt.Sprintf("%s:%d: machine: a path of one machine", s.path, 1+bytes.Count(s.text[:loc[1]], []byte("\n"))))
	}
	if !s.isGo() {
		return found
	}
	if clean, err := format.Source(s.text); err != nil || !bytes.Equal(clean, s.text) {
		found = append(found, s.path+": format: not as gofmt writes it: make fmt")
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, s.path, s.text, parser.ParseComments)
	if err != nil {
		return append(found, err.Error())
	}
	if s.isTest() {
		return found
	}
	if n := bytes.Count(s.text, []byte("\n")); n > maxLines && !generatedLine.Match(s.text) {
		found = append(found, fmt.Sprintf("%s: length: %d lines, more than %d", s.path, n, maxLines))
	}
	return append(found, codeFaults(s.path, fset, file)...)
}

// codeFaults looks for what the house rules forbid in code that is no test.
func codeFaults(path string, fset *token.FileSet, file *ast.File) []string {
	var found []string
	say := func(at token.Pos, kind, text string) {
		if oneFileExceptions[path+": "+kind] == "" {
			found = append(found, fmt.Sprintf("%s: %s: %s", fset.Position(at), kind, text))
		}
	}
	isMain := file.Name.Name == "main" && filepath.Base(path) == "main.go"
	shell := false
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				say(n.Pos(), "init", "runs before anybody can say no")
			}
			if lines := fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1; lines > maxFunc {
				say(n.Pos(), "func", fmt.Sprintf("%d lines, more than %d", lines, maxFunc))
			}
		case *ast.SelectorExpr:
			pkg, _ := n.X.(*ast.Ident)
			switch {
			case pkg == nil:
			case !isMain && (pkg.Name == "os" && n.Sel.Name == "Exit" || pkg.Name == "log" && strings.HasPrefix(n.Sel.Name, "Fatal")):
				say(n.Pos(), "exit", "below main.go an error is returned")
			case pkg.Name == "runtime" && n.Sel.Name == "GOOS" && !strings.HasPrefix(path, "cmd/"):
				say(n.Pos(), "goos", "below cmd the system is chosen by file name")
			}
		case *ast.BasicLit:
			word := strings.Trim(n.Value, "`\"")
			switch {
			case shellWord.MatchString(word):
				shell = true
			case shellCommand.MatchString(word) || (word == "-c" && shell):
				say(n.Pos(), "shell", "programs are run by path and arguments, never through a shell")
			}
		}
		return true
	})
	return found
}

var (
	shellWord    = regexp.MustCompile(`^(/bin/|/usr/bin/)?(ba|da|z|k)?sh$`)
	shellCommand = regexp.MustCompile(`\b(ba|da|z|k)?sh -c\b`)
)

func TestHouseRules(t *testing.T) {
	files := tree(t)
	if len(files) < 30 {
		t.Fatalf("only %d files were read", len(files))
	}
	for _, s := range files {
		for _, f := range faults(s) {
			t.Error(f)
		}
	}
}
