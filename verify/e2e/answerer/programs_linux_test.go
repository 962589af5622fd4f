package answerer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// The programs below look one name up, of any address family. Each prints "A ADDRESS" for each address, or "E"
// and what the library says, and "T" and how many microseconds the lookup took. Interpreters look localhost up
// before, which asks nobody, so that what they load for a first lookup is not counted.

// inC uses the C library that it is linked to.
const inC = `
#include <netdb.h>
#include <stdio.h>
#include <time.h>
#include <arpa/inet.h>
#include <sys/socket.h>
int main(int n, char **v) {
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all, *a;
	struct timespec from, to;
	char text[64];
	clock_gettime(CLOCK_MONOTONIC, &from);
	int e = getaddrinfo(v[1], 0, &hints, &all);
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("T %ld\n", (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000);
	if (e) return printf("E %s\n", gai_strerror(e)), 0;
	for (a = all; a; a = a->ai_next) {
		void *addr = a->ai_family == AF_INET ? (void *)&((struct sockaddr_in *)a->ai_addr)->sin_addr : (void *)&((struct sockaddr_in6 *)a->ai_addr)->sin6_addr;
		printf("A %s\n", inet_ntop(a->ai_family, addr, text, sizeof text));
	}
	return 0;
}
`

const python = `
import socket, sys, time
socket.getaddrinfo("localhost", None)
began = time.monotonic()
try:
    for a in socket.getaddrinfo(sys.argv[1], None, type=socket.SOCK_STREAM): print("A", a[4][0])
except socket.gaierror as e: print("E", e)
print("T", int((time.monotonic() - began) * 1e6))
`

// node is a lookup by the C library, cares one by the resolver that comes with Node.
const (
	node = `const dns = require("dns"); dns.lookup("localhost", () => { const began = performance.now(); dns.lookup(process.argv[1], {all: true}, (e, all) => {
		console.log("T", Math.round((performance.now() - began) * 1000)); console.log(e ? "E " + e.code : all.map(a => "A " + a.address).join("\n")) }) })`
	cares = `require("dns").resolve4(process.argv[1], (e, all) => console.log(e ? "E " + e.code : all.map(a => "A " + a).join("\n")))`
)

// java needs a JDK, which runs source; the Java library asks the C library.
const java = `public class Lookup {
	public static void main(String[] v) throws Exception {
		java.net.InetAddress.getAllByName("localhost");
		long began = System.nanoTime();
		try {
			for (var a : java.net.InetAddress.getAllByName(v[0])) System.out.println("A " + a.getHostAddress());
		} catch (java.net.UnknownHostException e) { System.out.println("E"); }
		System.out.println("T " + (System.nanoTime() - began) / 1000);
	}
}
`

// goLookup looks a name up with Go's own resolver, as static programs do.
func goLookup(args []string) int {
	r := net.Resolver{PreferGo: true}
	began := time.Now()
	all, err := r.LookupHost(context.Background(), args[0])
	fmt.Println("T", time.Since(began).Microseconds())
	if err != nil {
		var dnsErr *net.DNSError
		fmt.Println("E not found:", errors.As(err, &dnsErr) && dnsErr.IsNotFound)
	}
	for _, a := range all {
		fmt.Println("A", a)
	}
	return 0
}
