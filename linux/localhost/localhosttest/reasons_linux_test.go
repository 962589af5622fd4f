package localhosttest

import "strings"

// reasons of what differs between a box with its own localhost and a network namespace.
var reasons = []struct {
	name, text string
	is         func(d difference) bool
}{
	{"not the own address", "inside 127.0.0.0/8 a box binds its own address only", func(d difference) bool {
		return d.field == "server bind" && d.server.Address == "127.0.0.2" && d.got == "EPERM"
	}},
	{"IPv6 client of a fixed port", "bound to the own address like a server, it is IPv4 and reaches ::1 of what was bound there no more", func(d difference) bool {
		return d.got == "EAFNOSUPPORT" && d.client.Six && d.client.Port == "Q"
	}},
	{"localhost is one", "127.0.0.1 and ::1 are one address of the box", func(d difference) bool {
		return d.field == "connect" && d.want == "ECONNREFUSED" && d.got == "ok" || d.field == "request from" && d.want == "nothing"
	}},
	{"six to mapped", "a client that takes no IPv4, or is bound to ::1, does not reach a server that was bound to the mapped own address", func(d difference) bool {
		return d.field == "connect" && d.want == "ok" && d.got == "ECONNREFUSED" && (d.client.Only || d.client.Address == "::1")
	}},
	{"datagrams to ::", "the same for datagrams: the kernel sends none from an IPv6 socket to ::1 that arrive at a mapped address without a connection", func(d difference) bool {
		return d.field == "request from" && d.got == "nothing" && d.server.Address == "::"
	}},
	{"IPv6 shown as mapped", "a server on :: cannot know that ::1 was dialled, nor who dialled from a bound socket", func(d difference) bool {
		return (d.server.Address == "::" || d.client.Port != "") && strings.HasPrefix(d.want, "::1 ") && d.got == "::ffff:127.0.0.1 "+strings.TrimPrefix(d.want, "::1 ")
	}},
	{"fixed port of ::1", "a client that is bound to a port of ::1 is shown with the port that stands for it", func(d difference) bool {
		return d.client.Port == "Q" && d.want == "::1 Q" && d.got == "::1 *"
	}},
	{"dialled 127.0.0.2", "it is shown as 127.0.0.1 to the server, and as it was dialled to the client", func(d difference) bool {
		return d.dial.Address == "127.0.0.2" && (strings.Contains(d.got, "127.0.0.1 ") || d.field == "reply from" && d.got == "127.0.0.2 P")
	}},
	{"client bound first", "a client that had bound port 0 sends from 127.0.0.1, like one of the host: the server sees which address it dialled", func(d difference) bool {
		return d.field == "accepted name" && d.client.Port == "0" && isOwn(d.got, "P")
	}},
	{"client of a fixed port", "it was bound to the own address like a server, and is seen so by a server that was not", func(d difference) bool {
		return d.client.Port == "Q" && isOwn(d.got, "Q")
	}},
}

// reasonFor names the reason of a difference; "" when there is none.
func reasonFor(d difference) string {
	for _, r := range reasons {
		if r.is(d) {
			return r.name
		}
	}
	return ""
}

func isOwn(shown, port string) bool {
	a, p, _ := strings.Cut(strings.TrimPrefix(shown, "::ffff:"), " ")
	return strings.HasPrefix(a, "127.0.64.") && p == port
}
