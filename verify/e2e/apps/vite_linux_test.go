package apps

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// project is a page that vite serves; its module writes what it is.
func project(t *testing.T, name string) string {
	dir := folder(t)
	write(t, dir+"/package.json", `{"name": "`+name+`", "type": "module"}`)
	write(t, dir+"/index.html", `<!doctype html><title>x</title><p id="who">not run</p><script type="module" src="/main.js"></script>`)
	write(t, dir+"/main.js", "document.getElementById('who').textContent = 'this is "+name+"'\nimport.meta.hot?.accept()\n")
	return dir
}

// Two vites on the port that they are configured for, by name, with their Host check and their
// websocket.
func TestVite(t *testing.T) {
	node := need(t, "/usr/bin/node")
	vite := need(t, cache()+"/node_modules/vite/bin/vite.js")
	host(t)
	dirs := map[string]string{}
	for _, name := range []string{"web", "api"} {
		dirs[name] = project(t, name)
		p := box(t, name, dirs[name], node, vite, "--port", "3000", "--strictPort")
		at := address(t, name, 3000, p)
		page(t, at, name+".min.internal:3000", name)
		// Another name is still refused: the check is open for the zone, not off.
		if status, _ := get(t, at, "evil.example", "/main.js"); status != http.StatusForbidden {
			t.Errorf("%s: a foreign host name gets status %d", name, status)
		}
		hotUpdate(t, at, name, dirs[name])
	}
	browser(t, "web", "api")
}

// page asks for the module by the name of the box.
func page(t *testing.T, at, name, want string) {
	t.Helper()
	var status int
	var body string
	rig.Eventually(t, 30*time.Second, "vite answers", func() bool {
		status, body = get(t, at, name, "/main.js")
		return status != 0
	})
	if status != http.StatusOK || !strings.Contains(body, "this is "+want) {
		t.Fatalf("%s: status %d: %s", name, status, body)
	}
}

func get(t *testing.T, at, name, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+net.JoinHostPort(at, "3000")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = name
	resp, err := (&http.Client{Timeout: 20 * time.Second}).Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

var token = regexp.MustCompile(`wsToken = "([^"]+)"`)

// hotUpdate opens vite's websocket as a page of the box does, changes a file and waits to be told.
func hotUpdate(t *testing.T, at, name, dir string) {
	t.Helper()
	_, client := get(t, at, name+".min.internal:3000", "/@vite/client")
	m := token.FindStringSubmatch(client)
	if m == nil {
		t.Fatalf("%s: no token in vite's client", name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(at, "3000"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	origin := name + ".min.internal:3000"
	fmt.Fprintf(c, "GET /?token=%s HTTP/1.1\r\nHost: %s\r\nOrigin: http://%s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: vite-hmr\r\n\r\n", m[1], origin, origin)
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%s: websocket: %v, %v", name, resp, err)
	}
	write(t, dir+"/main.js", "document.getElementById('who').textContent = 'this is "+name+" again'\nimport.meta.hot?.accept()\n")
	for {
		text, err := frame(r)
		if err != nil {
			t.Fatalf("%s: no update was told: %v", name, err)
		}
		if strings.Contains(text, `"update"`) && strings.Contains(text, "/main.js") {
			return
		}
	}
}

// frame reads one unmasked frame of a server (RFC 6455, section 5.2).
func frame(r *bufio.Reader) (string, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", err
	}
	n := uint64(head[1] & 0x7f)
	if n >= 126 {
		size := make([]byte, 2)
		if n == 127 {
			size = make([]byte, 8)
		}
		if _, err := io.ReadFull(r, size); err != nil {
			return "", err
		}
		n = binary.BigEndian.Uint64(append(make([]byte, 8-len(size)), size...))
	}
	body := make([]byte, min(n, 1<<20))
	_, err := io.ReadFull(r, body)
	return string(body), err
}

// browser shows what a page of each box is once its module has run, by the name of the box.
func browser(t *testing.T, names ...string) {
	t.Helper()
	chromium := need(t, "/usr/bin/chromium")
	for _, name := range names {
		out, err := run(t, time.Minute, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
			"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+folder(t),
			"--virtual-time-budget=5000", "--dump-dom", "http://"+name+".min.internal:3000/")
		if err != nil || !strings.Contains(out, "this is "+name+" again") {
			t.Errorf("%s in chromium: %v\n%s", name, err, out)
		}
	}
}
