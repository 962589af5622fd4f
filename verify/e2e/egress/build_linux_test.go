package egress

import (
	"archive/zip"
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/verify/e2e/rig"
)

// makefile is a project that gets what it needs from three kinds of servers.
const makefile = `
hello: word lib
	go build -o hello .
word:
	curl -fsS -m 20 http://10.98.0.2/word -o word
lib:
	git clone -q http://10.98.0.2/lib.git lib
`

// project writes it, with what it needs, below a folder: src is built, www is what the servers have.
func (h *host) project(dir string) {
	h.Helper()
	var module bytes.Buffer
	z := zip.NewWriter(&module)
	for name, text := range map[string]string{"go.mod": "module example.com/greet\n", "greet.go": "package greet\n\nfunc Word() string { return \"hello\" }\n"} {
		w, err := z.Create("example.com/greet@v1.0.0/" + name)
		h.must(err)
		_, err = w.Write([]byte(text))
		h.must(err)
	}
	h.must(z.Close())
	versions := "www/go/example.com/greet/@v/"
	for name, text := range map[string]string{
		"www/word":               "word\n",
		versions + "list":        "v1.0.0\n",
		versions + "v1.0.0.info": `{"Version":"v1.0.0"}`,
		versions + "v1.0.0.mod":  "module example.com/greet\n",
		versions + "v1.0.0.zip":  module.String(),
		"lib/README":             "lib\n",
		"src/Makefile":           makefile,
		"src/go.mod":             "module example.com/hello\n\ngo 1.21\n\nrequire example.com/greet v1.0.0\n",
		"src/main.go":            "package main\n\nimport \"example.com/greet\"\n\nfunc main() { println(greet.Word()) }\n",
	} {
		path := filepath.Join(dir, name)
		h.must(os.MkdirAll(filepath.Dir(path), 0o755))
		h.must(os.WriteFile(path, []byte(text), 0o644))
	}
	git := func(args ...string) {
		h.run("git", append([]string{"-C", dir + "/lib", "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	}
	git("init", "-q")
	git("add", "README")
	git("commit", "-q", "-m", "first")
	git("update-server-info")
	h.must(os.Rename(dir+"/lib/.git", dir+"/www/lib.git"))
}

// TestBuild: a real build, with curl, git and Go, gets nothing in a box that may not reach its servers and is
// told why in one sentence each; in a box that may it is built. A build that joins a box has the box's verdict,
// and none when the box is gone.
func TestBuild(t *testing.T) {
	h := newHost(t)
	o := h.outside()
	dir := t.TempDir()
	h.project(dir)
	o.do(func() {
		l, err := net.Listen("tcp", far+":80")
		h.must(err)
		t.Cleanup(func() { l.Close() })
		go http.Serve(l, http.FileServer(http.Dir(dir+"/www")))
	})
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	h.must(err)
	gobin, err := exec.LookPath("go")
	h.must(err)
	c := rig.Cmd{Timeout: 3 * time.Minute, Env: []string{"PATH=" + filepath.Dir(gobin) + ":/usr/bin:/bin", "HOME=" + dir, "CGO_ENABLED=0",
		"GOPROXY=http://" + far + "/go", "GOSUMDB=off", "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local", "GOPATH=" + dir + "/gopath",
		"GOCACHE=" + strings.TrimSpace(string(cache)), "GIT_TERMINAL_PROMPT=0"}}
	build := func(flags string, target string) rig.Result {
		t.Helper()
		return c.Run(t, append(append([]string{"run"}, strings.Fields(flags)...), "--", "make", "-C", dir+"/src", target)...)
	}
	allowed := "--allow " + far + ":80/tcp"
	sentence := "could not reach " + far + ":80: the egress rules of box hello do not allow it"
	for _, target := range []string{"word", "lib"} {
		build("--name hello --egress deny", target).Want(t, 2, "minhost: the command "+sentence)
		build("--name hello "+allowed, target).Want(t, 0)
	}
	build("--name hello --egress deny", "hello").Want(t, 2, "minhost: the command "+sentence)
	build("--name hello "+allowed, "hello").Want(t, 0)
	if out, err := exec.Command(dir + "/src/hello").CombinedOutput(); err != nil || string(out) != "hello\n" {
		t.Errorf("what was built says %q, %v", out, err)
	}

	c.Run(t, "run", "--detach", "--name", "hello", "--egress", "deny", "--", "sleep", "300").Want(t, 0)
	h.must(os.Remove(dir + "/src/word"))
	build("--join hello --kind build", "word").Want(t, 2, "minhost: the build of hello "+sentence)
	c.Run(t, "stop", "hello").Want(t, 0)
	r := build("--join hello --kind build", "word")
	r.Want(t, 125, "hello", "minhost")
	if _, err := os.Stat(dir + "/src/word"); err == nil {
		t.Errorf("built without a box: %v", r)
	}
	gone := h.box("gone", api.Policy{Egress: api.EgressDeny})
	gone.end()
	_, _, err = h.dial().Join(h.ctx(), api.JoinIn{Lease: gone.plan.Lease, Secret: gone.plan.Secret, Kind: api.JoinKindBuild, PID: os.Getpid()}, nil)
	if err == nil {
		t.Error("a box that is gone was joined")
	}
}
