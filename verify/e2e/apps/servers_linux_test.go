package apps

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// Two redis servers on the port that every client has built in, with the settings that they come with.
func TestRedis(t *testing.T) {
	server, cli := need(t, "/usr/bin/redis-server"), need(t, "/usr/bin/redis-cli")
	host(t)
	at := map[string]string{}
	for _, name := range []string{"one", "two"} {
		p := box(t, name, folder(t), server, "--port", "6379", "--save", "")
		at[name] = address(t, name, 6379, p)
		if out, err := run(t, 10*time.Second, cli, "-h", name+".min.internal", "SET", "who", name); err != nil || out != "OK" {
			t.Fatalf("%s: %s, %v", name, out, err)
		}
	}
	for name := range at {
		if out, err := run(t, 10*time.Second, cli, "-h", at[name], "GET", "who"); err != nil || out != name {
			t.Errorf("%s at %s: %q, %v", name, at[name], out, err)
		}
		if r := join(t, name, cli, "GET", "who"); r.Status != 0 || strings.TrimSpace(r.Stdout) != name {
			t.Errorf("inside %s, at localhost: %v", name, r)
		}
	}
	if r := join(t, "one", cli, "-h", at["two"], "GET", "who"); r.Status == 0 {
		t.Errorf("a sibling reads: %v", r)
	}
	refused(t, "127.0.0.1", 6379)
}

// Two clusters of PostgreSQL on 5432, as initdb makes them: they listen on "localhost".
func TestPostgreSQL(t *testing.T) {
	bin := filepath.Dir(need(t, "/usr/lib/postgresql/*/bin/postgres"))
	psql := need(t, "/usr/bin/psql")
	host(t)
	at := map[string]string{}
	for _, name := range []string{"one", "two"} {
		dir := folder(t)
		p := box(t, name, dir, "sh", "-ec", fmt.Sprintf(`%[1]s/initdb -D data -A trust -U app >/dev/null
			exec %[1]s/postgres -D data -k "$PWD" -c fsync=off`, bin))
		at[name] = address(t, name, 5432, p)
		var out string
		var err error
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if out, err = run(t, 10*time.Second, psql, "-h", name+".min.internal", "-U", "app", "-d", "postgres", "-qc", "create table t as select '"+name+"'::text as who"); err == nil {
				break
			}
		}
		if err != nil {
			t.Fatalf("%s: %s, %v", name, out, err)
		}
	}
	for name := range at {
		query := []string{"-U", "app", "-d", "postgres", "-Atc", "select who from t"}
		if out, err := run(t, 10*time.Second, psql, append([]string{"-h", at[name]}, query...)...); err != nil || out != name {
			t.Errorf("%s: %q, %v", name, out, err)
		}
		if r := join(t, name, append([]string{psql, "-h", "localhost"}, query...)...); r.Status != 0 || strings.TrimSpace(r.Stdout) != name {
			t.Errorf("inside %s, at localhost: %v", name, r)
		}
	}
	if r := join(t, "one", psql, "-h", at["two"], "-U", "app", "-d", "postgres", "-Atc", "select 1"); r.Status == 0 {
		t.Errorf("a sibling reads: %v", r)
	}
	refused(t, "127.0.0.1", 5432)
}

// Two name servers on port 53, TCP and UDP, run by an unprivileged user.
func TestNameServer(t *testing.T) {
	dnsmasq, dig := need(t, "/usr/sbin/dnsmasq"), need(t, "/usr/bin/dig")
	host(t)
	for i, name := range []string{"one", "two"} {
		want := fmt.Sprintf("192.0.2.%d", i+1)
		p := box(t, name, folder(t), dnsmasq, "--keep-in-foreground", "--no-resolv", "--no-hosts", "--conf-file=/dev/null", "--pid-file=",
			"--user=", "--group=", "--listen-address=127.0.0.1", "--bind-interfaces", "--address=/test/"+want)
		at := address(t, name, 53, p)
		for _, how := range []string{"+notcp", "+tcp"} {
			if out, err := run(t, 10*time.Second, dig, "@"+at, "+short", "+tries=1", how, "x.test"); err != nil || out != want {
				t.Errorf("%s %s: %q, %v", name, how, out, err)
			}
		}
	}
}

// A gRPC server as its documentation has it: on [::], with SO_REUSEPORT; and its client inside, at
// localhost.
func TestGRPC(t *testing.T) {
	python := need(t, "/usr/bin/python3")
	need(t, "/usr/lib/python3/dist-packages/grpc")
	host(t)
	const server = `
import grpc, sys
from concurrent import futures
class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request + sys.argv[1].encode())
s = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
s.add_generic_rpc_handlers((Handler(),))
s.add_insecure_port('[::]:50051')
s.start()
s.wait_for_termination()
`
	const client = `
import grpc, sys
with grpc.insecure_channel(sys.argv[1] + ':50051') as c:
    print(c.unary_unary('/test/Say')(b'from ', timeout=10).decode())
`
	for _, name := range []string{"one", "two"} {
		dir := folder(t)
		write(t, dir+"/server.py", server)
		write(t, dir+"/client.py", client)
		p := box(t, name, dir, python, "server.py", name)
		at := address(t, name, 50051, p)
		if out, err := run(t, 30*time.Second, python, dir+"/client.py", at); err != nil || out != "from "+name {
			t.Errorf("%s from the host: %q, %v", name, out, err)
		}
		if r := join(t, name, python, dir+"/client.py", "localhost"); r.Status != 0 || strings.TrimSpace(r.Stdout) != "from "+name {
			t.Errorf("%s from inside: %v", name, r)
		}
	}
}

// QUIC by a library of its own kind of socket calls (control data, segments): a server at localhost:4242 and its
// client in one box, in two confined boxes at once, and in one that may go everywhere.
func TestQUIC(t *testing.T) {
	echo := need(t, cache()+"/echo")
	host(t)
	for _, egress := range []string{"deny", "open"} {
		var boxes []*rig.Process
		for _, name := range []string{"one", "two"} {
			boxes = append(boxes, rig.Cmd{UID: rig.User, Env: home(t)}.Start(t, "run", "--name", name, "--egress", egress, "--",
				"/bin/sh", "-c", echo+"; sleep 2"))
		}
		for i, p := range boxes {
			if r := p.Wait(); r.Status != 0 || !strings.Contains(r.Stdout, "Client: Got 'foobar'") {
				t.Errorf("%s, box %d: %v", egress, i, r)
			}
		}
	}
}

// Who watches hears of a server that comes and goes, as it happens.
func TestWatchHearsListeners(t *testing.T) {
	python := need(t, "/usr/bin/python3")
	host(t)
	watch := rig.Cmd{UID: rig.User, Env: home(t)}.Start(t, "watch")
	time.Sleep(time.Second) // nothing says that it has begun
	p := box(t, "web", folder(t), "sh", "-c", python+" -m http.server 3000 & sleep 3; kill $!; wait; sleep 3")
	watch.Await("listens on http://web.min.internal:3000")
	watch.Await("stopped listening on http://web.min.internal:3000")
	p.Wait()
}
