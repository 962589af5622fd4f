package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const thisModule = "github.com/gominimal/minhost"

// listed is what go list -deps tells about one package.
type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Module     *struct{ Path string }
}

// matches says whether a path below this module ("linux/nft") fits a pattern ("linux/...", "...").
func matches(pattern, path string) bool {
	if pattern == "..." {
		return true
	}
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == base || strings.HasPrefix(path, base+"/")
	}
	return path == pattern
}

func matchesAny(patterns []string, path string) bool {
	for _, p := range patterns {
		if matches(p, path) {
			return true
		}
	}
	return false
}

// offences checks all packages of this module that are among the listed ones.
func offences(packages []listed) []string {
	owner := map[string]string{} // import path -> module
	for _, p := range packages {
		if p.Module != nil {
			owner[p.ImportPath] = p.Module.Path
		}
	}
	var found []string
	for _, p := range packages {
		if owner[p.ImportPath] != thisModule {
			continue
		}
		from := within(p.ImportPath)
		for _, imported := range p.Imports {
			var problem string
			switch owner[imported] {
			case "": // standard library
				continue
			case thisModule:
				problem = internalOffence(from, within(imported))
			default:
				problem = moduleOffence(from, owner[imported])
			}
			if problem != "" {
				found = append(found, fmt.Sprintf("%s imports %s: %s", from, imported, problem))
			}
		}
	}
	return found
}

func within(path string) string { return strings.TrimPrefix(path, thisModule+"/") }

func internalOffence(from, to string) string {
	for _, r := range internal {
		if !matches(r.from, from) {
			continue
		}
		if matchesAny(r.may, to) {
			return ""
		}
		return r.reason
	}
	return "no rule is for this package"
}

func moduleOffence(from, mod string) string {
	for _, m := range modules {
		if m.path != mod {
			continue
		}
		if matchesAny(m.in, from) {
			return ""
		}
		return fmt.Sprintf("%s (%s) is only for %v", mod, m.reason, m.in)
	}
	return mod + " is not among the modules that earned their place"
}

func TestImports(t *testing.T) {
	for _, goos := range []string{"linux", "darwin"} {
		t.Run(goos, func(t *testing.T) {
			packages := list(t, goos)
			own := 0
			for _, p := range packages {
				if p.Module != nil && p.Module.Path == thisModule {
					own++
				}
			}
			if own < 10 {
				t.Fatalf("only %d packages of this module were listed", own)
			}
			for _, o := range offences(packages) {
				t.Error(o)
			}
		})
	}
}

func list(t *testing.T, goos string) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Imports,Module", "./...")
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=arm64", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var packages []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// TestOffencesAreFound plants one mistake of each kind.
func TestOffencesAreFound(t *testing.T) {
	own := func(path string, imports ...string) listed {
		return listed{ImportPath: thisModule + "/" + path, Imports: imports, Module: &struct{ Path string }{thisModule}}
	}
	other := func(path, mod string) listed {
		return listed{ImportPath: path, Module: &struct{ Path string }{mod}}
	}
	base := []listed{
		own("linux/nft"), own("installer/helper"), own("installer/lease"),
		other("github.com/google/nftables/expr", "github.com/google/nftables"),
		other("github.com/google/go-cmp/cmp", "github.com/google/go-cmp"),
		other("example.com/new", "example.com/new"),
		{ImportPath: "net", Standard: true},
	}
	for _, c := range []struct {
		p    listed
		want string // "" for allowed
	}{
		{own("linux/nft", thisModule+"/installer/lease", "github.com/google/nftables/expr", "net"), ""},
		{own("installer/lease", thisModule+"/linux/nft"), "stands alone"},
		{own("linux/cgroup", thisModule+"/installer/helper"), "never who calls"},
		{own("linux/cgroup", "github.com/google/nftables/expr"), "only for [linux/nft]"},
		{own("linux/cgroup", "github.com/google/go-cmp/cmp"), "only for [verify/golden]"},
		{own("linux/cgroup", "example.com/new"), "earned their place"},
		{own("elsewhere", thisModule+"/linux/nft"), "no rule"},
	} {
		got := offences(append([]listed{c.p}, base...))
		switch {
		case c.want == "" && len(got) > 0:
			t.Errorf("%v: %v", c.p, got)
		case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
			t.Errorf("%v: %v, want one with %q", c.p, got, c.want)
		}
	}
}
