package release

import (
	"bytes"
	"debug/buildinfo"
	"debug/macho"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// build makes the program as "make cross" does.
func build(t *testing.T, goos, goarch string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "minhost")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, "github.com/gominimal/minhost/cmd/minhost")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// model are words of the model of a Mac, and the files that have them: a word that nobody uses any more
// would be missing everywhere.
var model = map[string]string{
	"FAKE_LAUNCHD_SOCKETS": "../../cmd/minhost/platform_fakedarwin.go",
	"/.model.sock":         "../fakedarwin/wire.go",
	"verify/fakedarwin":    "../../cmd/minhost/platform_fakedarwin.go",
}

// clean wants none of them in a released file, and no build tag.
func clean(t *testing.T, path string) {
	t.Helper()
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for word, source := range model {
		if text, err := os.ReadFile(source); err != nil || !bytes.Contains(text, []byte(word)) {
			t.Errorf("%s is not in %s any more: %v", word, source, err)
		}
		if bytes.Contains(program, []byte(word)) {
			t.Errorf("%q is in the released program", word)
		}
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range info.Settings {
		if s.Key == "-tags" || s.Key == "CGO_ENABLED" && s.Value != "0" {
			t.Errorf("built with %s=%s", s.Key, s.Value)
		}
	}
}

func TestLinux(t *testing.T) { clean(t, build(t, "linux", "amd64")) }

// libraries are all that the program may load on a Mac: parts of the system that every version has.
var libraries = []string{
	"/usr/lib/libSystem.B.dylib", "/usr/lib/libresolv.9.dylib",
	"/System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation",
	"/System/Library/Frameworks/Security.framework/Versions/A/Security",
}

// newest is the macOS that minhost may ask for at most: 12.0, as Go 1.26 itself.
const newest = 12 << 16

func TestMac(t *testing.T) {
	for _, arch := range []string{"arm64", "amd64"} {
		t.Run(arch, func(t *testing.T) {
			path := build(t, "darwin", arch)
			clean(t, path)
			f, err := macho.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			loads, err := f.ImportedLibraries()
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range loads {
				if !slices.Contains(libraries, l) {
					t.Errorf("it loads %s", l)
				}
			}
			symbols, err := f.ImportedSymbols()
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"_launch_activate_socket", "_free", "_kevent", "_getaddrinfo"} {
				if !slices.Contains(symbols, want) {
					t.Errorf("it does not import %s", want)
				}
			}
			for _, s := range symbols {
				if strings.HasPrefix(s, "_objc") || strings.HasPrefix(s, "_dispatch") {
					t.Errorf("it imports %s", s)
				}
			}
			if v := minimum(f); v == 0 || v > newest {
				t.Errorf("it asks for macOS %d.%d", v>>16, v>>8&0xff)
			}
			if arch == "arm64" && !signed(f) {
				t.Error("no signature: Apple silicon runs nothing unsigned, an ad-hoc one by the linker will do")
			}
		})
	}
}

const (
	buildVersion  = 0x32 // LC_BUILD_VERSION
	minVersion    = 0x24 // LC_VERSION_MIN_MACOSX
	codeSignature = 0x1d // LC_CODE_SIGNATURE
)

// command finds a load command by its number.
func command(f *macho.File, number uint32) []byte {
	for _, l := range f.Loads {
		if raw := l.Raw(); binary.LittleEndian.Uint32(raw) == number {
			return raw
		}
	}
	return nil
}

// minimum is the least version of macOS, 16.8.8 bits.
func minimum(f *macho.File) uint32 {
	if c := command(f, buildVersion); c != nil {
		return binary.LittleEndian.Uint32(c[12:])
	}
	if c := command(f, minVersion); c != nil {
		return binary.LittleEndian.Uint32(c[8:])
	}
	return 0
}

func signed(f *macho.File) bool { return command(f, codeSignature) != nil }
