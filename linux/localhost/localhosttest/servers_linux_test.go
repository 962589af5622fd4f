package localhosttest

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/netlab"
)

// server is an unmodified program that listens, and where.
type server struct {
	name, port string
	argv       func(t *testing.T, dir string) []string
}

func argv(words ...string) func(*testing.T, string) []string {
	return func(*testing.T, string) []string { return words }
}

// loop is a line of the shell that calls a program, which the shell finds where findProgram does.
func loop(program, line string) func(*testing.T, string) []string {
	return func(t *testing.T, _ string) []string {
		if findProgram(program) == "" {
			t.Skip("SKIP apps: no " + program)
		}
		return []string{"/bin/sh", "-c", line}
	}
}

// node is its http server; where is what listen gets behind the port.
func node(where string) func(*testing.T, string) []string {
	return argv("node", "-e", `require("http").createServer((q,r)=>r.end(process.env.BOX)).listen(3000`+where+`)`)
}

var programsThatListen = []server{
	{"python", "3000", argv("python3", "-m", "http.server", "3000")},
	{"python on localhost", "3000", argv("python3", "-m", "http.server", "--bind", "localhost", "3000")},
	{"python on ::1", "3000", argv("python3", "-m", "http.server", "--bind", "::1", "3000")},
	{"node", "3000", node("")},
	{"node on localhost", "3000", node(`,"localhost"`)},
	{"node on ::1", "3000", node(`,"::1"`)},
	{"node on 0.0.0.0", "3000", node(`,"0.0.0.0"`)},
	{"node on 127.0.0.1", "3000", node(`,"127.0.0.1"`)},
	{"nginx", "80", nginx},
	{"go", "8080", argv("/proc/self/exe", "http")},
	{"nc", "3000", loop("nc", `while printf 'HTTP/1.0 200 OK\r\n\r\n%s' "$BOX" | nc -l -N 3000 >/dev/null; do :; done`)},
}

// nginx as Debian sets it up: IPv4, and IPv6 only beside it, on port 80.
func nginx(t *testing.T, dir string) []string {
	conf := filepath.Join(dir, "nginx.conf")
	var temp strings.Builder
	for _, k := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temp, "%s_temp_path %s;\n", k, dir)
	}
	text := fmt.Sprintf("daemon off; pid %[1]s/pid; error_log %[1]s/error;\nevents {}\nhttp { access_log off; %[2]s\n"+
		"server { listen 80 default_server; listen [::]:80 default_server; root %[1]s; } }\n", dir, temp.String())
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return []string{"nginx", "-c", conf, "-e", dir + "/error"}
}

// TestServers starts each program in two boxes on the same port, as an account without capabilities: both
// listen, and each is found by itself as localhost and by others at its address.
func TestServers(t *testing.T) {
	w := newTown(t)
	leafs := map[string]int{"one": w.box(1, nil), "two": w.box(2, nil)}
	at := map[string]string{"one": "127.0.64.1", "two": "127.0.64.2"}
	for _, s := range programsThatListen {
		t.Run(s.name, func(t *testing.T) {
			for _, box := range []string{"one", "two"} {
				dir := shared(t)
				if err := os.WriteFile(dir+"/index.html", []byte(box), 0o644); err != nil {
					t.Fatal(err)
				}
				run(t, leafs[box], dir, box, s.argv(t, dir)...)
			}
			for _, box := range []string{"one", "two"} {
				fetches(t, "http://"+at[box]+":"+s.port+"/", box)
				for _, local := range []string{"localhost", "127.0.0.1", "[::1]"} {
					url := "http://" + local + ":" + s.port + "/"
					if got := netlab.InLeaf(t, leafs[box], "get", url); got != box {
						t.Errorf("%s from box %s: %q", url, box, got)
					}
				}
			}
		})
	}
}

// shared is a folder that the account of the boxes may write.
func shared(t *testing.T) string {
	dir, err := os.MkdirTemp("/run", "box")
	if err == nil {
		err = os.Chown(dir, somebody, somebody)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// findProgram looks where everybody may run what is there.
func findProgram(name string) string {
	for _, dir := range []string{"", "/usr/bin/", "/usr/sbin/", "/bin/"} {
		if p := dir + name; filepath.IsAbs(p) {
			if _, err := os.Stat(p); err == nil {
				return p
			}
		}
	}
	return ""
}

// run starts a program in a leaf until the end of the test.
func run(t *testing.T, leaf int, dir, box string, argv ...string) {
	t.Helper()
	path := findProgram(argv[0])
	if path == "" {
		t.Skip("SKIP apps: no " + argv[0])
	}
	var log strings.Builder
	cmd := exec.Command(path, argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &log, &log
	cmd.Env = append(os.Environ(), "BOX="+box, "HOME="+dir, "NETLAB_CHILD="+strings.Join(argv[1:], ""))
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: leaf, Setpgid: true, Credential: &syscall.Credential{Uid: somebody, Gid: somebody}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s in box %s: %s", argv[0], box, log.String())
		}
	})
}

// get fetches a page, from a server that may not be up yet.
func get(url string) (string, error) {
	var last error
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Second}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		r, err := client.Get(url)
		if last = err; err != nil {
			continue
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		return string(body), err
	}
	return "", last
}

func fetches(t *testing.T, url, want string) {
	t.Helper()
	if got, err := get(url); err != nil || got != want {
		t.Errorf("%s: %q, %v; want %q", url, got, err, want)
	}
}

func getChild(args []string) int {
	got, err := get(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Print(got)
	return 0
}

// httpChild is a plain server of net/http.
func httpChild([]string) int {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getenv("BOX")) })
	fmt.Fprintln(os.Stderr, http.ListenAndServe(":8080", nil))
	return 1
}
