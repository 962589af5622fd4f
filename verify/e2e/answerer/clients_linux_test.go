package answerer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/netlab"
)

// musl is a program that looks a name up with the C library that it is linked to. It prints "A
// ADDRESS" for each address, or "E" and what the library says.
const musl = `
#include <netdb.h>
#include <stdio.h>
#include <arpa/inet.h>
#include <sys/socket.h>
int main(int n, char **v) {
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all, *a;
	char text[64];
	int e = getaddrinfo(v[1], 0, &hints, &all);
	if (e) return printf("E %s\n", gai_strerror(e)), 0;
	for (a = all; a; a = a->ai_next) {
		void *addr = a->ai_family == AF_INET ? (void *)&((struct sockaddr_in *)a->ai_addr)->sin_addr : (void *)&((struct sockaddr_in6 *)a->ai_addr)->sin6_addr;
		printf("A %s\n", inet_ntop(a->ai_family, addr, text, sizeof text));
	}
	return 0;
}
`

const python = `
import socket, sys
try:
    for a in socket.getaddrinfo(sys.argv[1], None, type=socket.SOCK_STREAM): print("A", a[4][0])
except socket.gaierror as e: print("E", e)
`

// node is a lookup by the C library, cares one by the resolver that comes with Node.
const (
	node  = `require("dns").lookup(process.argv[1], {all: true}, (e, all) => console.log(e ? "E " + e.code : all.map(a => "A " + a.address).join("\n")))`
	cares = `require("dns").resolve4(process.argv[1], (e, all) => console.log(e ? "E " + e.code : all.map(a => "A " + a).join("\n")))`
)

// java needs a JDK, which runs source; the Java library asks the C library.
const java = `public class Lookup {
	public static void main(String[] v) {
		try {
			for (var a : java.net.InetAddress.getAllByName(v[0])) System.out.println("A " + a.getHostAddress());
		} catch (java.net.UnknownHostException e) { System.out.println("E"); }
	}
}
`

// goLookup looks a name up with Go's own resolver, as static programs do.
func goLookup(args []string) int {
	r := net.Resolver{PreferGo: true}
	all, err := r.LookupHost(context.Background(), args[0])
	if err != nil {
		var dnsErr *net.DNSError
		fmt.Println("E not found:", errors.As(err, &dnsErr) && dnsErr.IsNotFound)
	}
	for _, a := range all {
		fmt.Println("A", a)
	}
	return 0
}

// TestRealClients: lookups of a held, a stopped and an unknown name by every resolver end at once,
// right, and with as many queries as it has to ask: one for each address family. So none was asked
// again, over TCP or without EDNS, which is what resolvers do with an answer that they do not like.
func TestRealClients(t *testing.T) {
	start(t, "stopped -", "web 127.0.64.9")
	for path, text := range map[string]string{
		"/etc/resolv.conf":   "nameserver 127.0.0.1\noptions attempts:2 timeout:5\n",
		"/etc/nsswitch.conf": "hosts: files dns\n",
		"/etc/hosts":         "127.0.0.1 localhost\n",
	} {
		_ = os.Remove(path) // it may be a link
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	nft(t, `table ip clients {
		chain out { type nat hook output priority 0; udp dport 53 redirect to :15353; tcp dport 53 redirect to :15353; }
		chain asked { type filter hook input priority 0; udp dport 15353 counter; tcp dport 15353 counter; }
	}`)
	t.Cleanup(func() { nft(t, "delete table ip clients") })
	for _, c := range []struct {
		name    string
		queries int // of one lookup
		lookup  func(t *testing.T, name string) string
	}{
		{"dig", 1, tool("/usr/bin/dig", "+short", "+tries=2", "+time=5", "@127.0.0.1")},
		{"dig HTTPS", 1, tool("/usr/bin/dig", "+short", "+tries=2", "+time=5", "@127.0.0.1", "HTTPS")},
		{"delv", 1, tool("/usr/bin/delv", "-i", "+short", "@127.0.0.1", "-t", "A", "-q")},
		{"kdig", 1, tool("/usr/bin/kdig", "+short", "+retry=1", "+timeout=5", "@127.0.0.1")},
		{"drill", 1, tool("/usr/bin/drill", "-Q", "@127.0.0.1", "A")},
		{"glibc", 2, tool("/usr/bin/getent", "ahosts")},
		{"python", 2, tool("/usr/bin/python3", "-c", python)},
		{"node", 2, tool("/usr/bin/node", "-e", node)},
		{"node c-ares", 1, tool("/usr/bin/node", "-e", cares)},
		{"java", 2, tool("/usr/bin/java", "-XX:TieredStopAtLevel=1", program(t, "Lookup.java", java))},
		{"musl", 2, compiled("/usr/bin/musl-gcc", musl)},
		{"go", 2, func(t *testing.T, name string) string { return netlab.InLeaf(t, netlab.NoLeaf, "go-lookup", name) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, want := range map[string]string{"web": "127.0.64.9", "stopped": "", "nobody": "", "host": "127.0.0.1"} {
				if c.name == "dig HTTPS" {
					want = ""
				}
				before := asked(t)
				began := time.Now()
				got := c.lookup(t, name+".min.internal")
				took := time.Since(began)
				if found := strings.Join(addresses.FindAllString(got, -1), " "); found != want && !(want != "" && onlyOf(found, want)) {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
				if n := asked(t) - before; n != c.queries {
					t.Errorf("%s: %d queries, want %d", name, n, c.queries)
				}
				// The shortest time after which any of them asks again is 5 s, musl's 2.5. Java starts in seconds.
				if took > 4*time.Second && c.name != "java" {
					t.Errorf("%s took %v", name, took)
				}
			}
		})
	}
}

var addresses = regexp.MustCompile(`\b127\.\d+\.\d+\.\d+\b|\b[0-9a-f:]*::[0-9a-f:]*`)

// onlyOf tells whether found is want, however often.
func onlyOf(found, want string) bool {
	return strings.TrimSpace(strings.ReplaceAll(found, want, "")) == ""
}

// tool runs an installed program with the name as its last argument.
func tool(path string, args ...string) func(*testing.T, string) string {
	return func(t *testing.T, name string) string {
		t.Helper()
		if _, err := os.Stat(path); err != nil {
			t.Skipf("no %s here", path)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		out, err := exec.CommandContext(ctx, path, append(args[:len(args):len(args)], name)...).CombinedOutput()
		var status *exec.ExitError
		if err != nil && !errors.As(err, &status) { // some say by their status that there is no such name
			t.Fatalf("%s: %v", path, err)
		}
		return string(out)
	}
}

// program writes a file for an interpreter and returns its path.
func program(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// compiled runs a C program, made by a compiler that may not be there.
func compiled(compiler, source string) func(*testing.T, string) string {
	return func(t *testing.T, name string) string {
		t.Helper()
		if _, err := os.Stat(compiler); err != nil {
			t.Skipf("no %s here", compiler)
		}
		dir := t.TempDir()
		program := filepath.Join(dir, "lookup")
		cmd := exec.Command(compiler, "-static", "-x", "c", "-o", program, "-")
		cmd.Stdin = strings.NewReader(source)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", compiler, err, out)
		}
		return tool(program)(t, name)
	}
}

var packets = regexp.MustCompile(`counter packets (\d+)`)

// asked is how many packets came to the answerer so far.
func asked(t *testing.T) (n int) {
	t.Helper()
	for _, m := range packets.FindAllStringSubmatch(nft(t, "list table ip clients"), -1) {
		k, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		n += k
	}
	return n
}
