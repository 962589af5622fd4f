package localhosttest

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// pair is a server and a client that dials it.
type pair struct {
	server, client, dial form
	// connect: a client of datagrams connects first. TCP always does.
	connect bool
}

func (c pair) String() string {
	how := "connect"
	if !c.connect {
		how = "sendto"
	}
	return fmt.Sprintf("%v <- %v %s %s", c.server, c.client, how, c.dial.Address)
}

// pairs generates the matrix.
func pairs() []pair {
	var out []pair
	for _, kind := range []string{"stream", "dgram"} {
		for _, s := range servers(kind) {
			for _, c := range clients(kind) {
				out = append(out, pair{server: s, client: c.client, dial: c.dial, connect: true})
				if kind == "dgram" {
					out = append(out, pair{server: s, client: c.client, dial: c.dial})
				}
			}
		}
	}
	return out
}

func servers(kind string) []form {
	var out []form
	for _, port := range []string{"P", "0"} {
		for _, a := range []string{"0.0.0.0", "127.0.0.1", "127.0.0.2"} {
			out = append(out, form{Kind: kind, Address: a, Port: port})
		}
		for _, only := range []bool{false, true} {
			for _, a := range []string{"::", "::1", "::ffff:0.0.0.0", "::ffff:127.0.0.1"} {
				out = append(out, form{Kind: kind, Six: true, Only: only, Address: a, Port: port})
			}
		}
	}
	return append(out, form{Kind: kind}, form{Kind: kind, Six: true})
}

// clients come with what they dial. Those that bind first dial the plain loopback address.
func clients(kind string) []pair {
	var out []pair
	add := func(c form, binds []form, dials ...string) {
		for _, d := range dials {
			out = append(out, pair{client: c, dial: form{Address: d}})
		}
		for _, b := range binds {
			c.Address, c.Port = b.Address, b.Port
			out = append(out, pair{client: c, dial: form{Address: dials[0]}})
		}
	}
	four := []form{{Address: "0.0.0.0", Port: "0"}, {Address: "127.0.0.1", Port: "0"}, {Address: "0.0.0.0", Port: "Q"}, {Address: "127.0.0.1", Port: "Q"}}
	six := []form{{Address: "::", Port: "0"}, {Address: "::1", Port: "0"}, {Address: "::", Port: "Q"}, {Address: "::1", Port: "Q"}}
	add(form{Kind: kind}, four, "127.0.0.1", "0.0.0.0", "127.0.0.2")
	add(form{Kind: kind, Six: true}, six, "::1", "::", "::ffff:127.0.0.1")
	add(form{Kind: kind, Six: true, Only: true}, six[2:], "::1")
	return out
}

// outcome of a pair: what each call said.
type outcome map[string]string

// callsChild tries every pair and prints the outcomes as JSON, a line each. The first port is given.
func callsChild(args []string) int {
	base, err := strconv.Atoi(args[0])
	if err != nil {
		return 2
	}
	if len(args) > 1 {
		if err := linkUp("lo"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	for i, c := range pairs() {
		if err := json.NewEncoder(os.Stdout).Encode(c.try(ports{base + 2*i, base + 2*i + 1})); err != nil {
			return 1
		}
	}
	return 0
}

func (c pair) try(x ports) outcome {
	o := outcome{}
	server, err := c.server.open()
	if err != nil {
		return outcome{"server": errno(err)}
	}
	defer unix.Close(server)
	if !bind(server, c.server, x, o, "server") {
		return o
	}
	if c.server.Kind == "stream" {
		if err := unix.Listen(server, 8); err != nil {
			o["listen"] = errno(err)
			return o
		}
	} else if c.server.Address == "" {
		return o // not bound at all
	}
	o["server name"] = x.local(server)
	at, err := unix.Getsockname(server)
	if err != nil {
		return o
	}
	client, err := c.client.open()
	if err != nil {
		return outcome{"client": errno(err)}
	}
	defer unix.Close(client)
	if !bind(client, c.client, x, o, "client") {
		return o
	}
	to := c.client.sockaddr(c.dial.Address, portOf(at))
	if c.server.Kind == "stream" {
		c.stream(x, o, server, client, to)
	} else {
		c.datagrams(x, o, server, client, to)
	}
	return o
}

func bind(fd int, f form, x ports, o outcome, who string) bool {
	if f.Address == "" {
		return true
	}
	err := unix.Bind(fd, f.sockaddr(f.Address, x.number(f.Port)))
	o[who+" bind"] = errno(err)
	if err == nil {
		o[who+" bound"] = x.local(fd)
	}
	return err == nil
}

func portOf(a unix.Sockaddr) int {
	if four, ok := a.(*unix.SockaddrInet4); ok {
		return four.Port
	}
	return a.(*unix.SockaddrInet6).Port
}

func (c pair) stream(x ports, o outcome, server, client int, to unix.Sockaddr) {
	err := unix.Connect(client, to)
	o["connect"] = errno(err)
	if err != nil {
		return
	}
	o["client name"], o["client peer"] = x.local(client), x.peer(client)
	if !readable(server, 5*time.Second) {
		o["accept"] = "nothing"
		return
	}
	fd, from, err := unix.Accept(server)
	if err != nil {
		o["accept"] = errno(err)
		return
	}
	defer unix.Close(fd)
	o["accept"], o["accepted name"], o["accepted peer"] = x.name(from), x.local(fd), x.peer(fd)
}

// patience with what does not come; what comes is there at once.
const patience = 25 * time.Millisecond

func (c pair) datagrams(x ports, o outcome, server, client int, to unix.Sockaddr) {
	var err error
	if c.connect {
		err = unix.Connect(client, to)
		o["connect"] = errno(err)
		if err == nil {
			o["client name"], o["client peer"] = x.local(client), x.peer(client)
			_, err = unix.Write(client, []byte("x"))
		}
	} else {
		err = unix.Sendto(client, []byte("x"), 0, to)
	}
	o["send"] = errno(err)
	if err != nil {
		return
	}
	var from unix.Sockaddr
	o["request from"], from = x.receive(server, patience)
	if from == nil {
		return
	}
	o["reply"] = errno(unix.Sendto(server, []byte("y"), 0, from))
	o["reply from"], _ = x.receive(client, patience)
}
