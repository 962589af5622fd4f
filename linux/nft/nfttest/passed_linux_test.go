package nfttest

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// TestPassed: a socket has the verdict of the cgroup that it was made in, whoever has it, however it came there
// (SCM_RIGHTS, or with the ring that it is registered with) and whoever asks the kernel to send. So one of a deny-all box leads
// nowhere outside of it either; and one of the host's or of an open box, in a deny-all box, leads out: who has such a
// one has to give it.
func TestPassed(t *testing.T) {
	l := newLab(t)
	l.belt()
	o := newOutside(l)
	for _, network := range []string{"udp", "tcp"} {
		o.echo(network, ":8000")
	}
	leaves := map[string]int{"host": netlab.NoLeaf, "open": l.box(openEgress()).FD(), "deny": l.box(deny()).FD()}
	actors := map[string]*netlab.Proc{}
	for name, leaf := range leaves {
		actors[name] = netlab.Start(t, netlab.Spawn{Leaf: leaf}, "passer", "maker "+name, o.far()+":8000")
		// Another process of the same leaf: a ring that was passed is not given back to who made it.
		actors["other "+name] = netlab.Start(t, netlab.Spawn{Leaf: leaf}, "passer", "user "+name, o.far()+":8000")
	}
	for _, a := range actors {
		a.Line()
	}
	tell := func(who, what string) string {
		actors[who].Say(what)
		return actors[who].Line()
	}
	for maker := range leaves {
		for user := range leaves {
			for _, way := range []string{"udp send", "tcp send", "udp ring", "udp uring", "tcp uring"} {
				want := "ok"
				switch {
				case maker == "deny" && strings.HasPrefix(way, "udp"):
					want = "EPERM"
				case maker == "deny":
					want = "ECONNREFUSED"
				}
				network, by, _ := strings.Cut(way, " ")
				what := "socket"
				if by == "ring" { // the ring goes, and not the socket
					what = "ring"
				}
				if got := tell(maker, "make "+network+" "+what); got != "ok" {
					t.Fatal(got)
				}
				if got := tell(maker, "give user "+user); got != "ok" {
					t.Fatal(got)
				}
				if got := tell("other "+user, "take "+what+" "+by); got != want {
					t.Errorf("made by %s, in the hands of %s, %s: %s, want %s", maker, user, way, got, want)
				}
			}
		}
	}
	// A ring is not a socket: what it makes is made by who submits, here or behind a call that its workers do.
	for _, way := range []string{"none", "async", "poll"} {
		for leaf, want := range map[string]string{"open": "ok", "deny": "EPERM"} {
			if got := tell(leaf, "own "+way); got != want {
				t.Errorf("a socket that a ring made in %s (%s): %s, want %s", leaf, way, got, want)
			}
		}
	}
	for user, want := range map[string]string{"host": "ok", "deny": "EPERM"} {
		tell("host", "make udp ring")
		tell("host", "give user "+user)
		if got := tell("other "+user, "take ring make"); got != want {
			t.Errorf("a socket that the host's ring made in the hands of %s: %s, want %s", user, got, want)
		}
	}
}

// passer makes sockets and rings, and gives and takes them under abstract names.
type passer struct {
	to   netip.AddrPort
	at   int // where it is given something
	fd   int // what it made last
	ring *ring
}

func passerChild(args []string) int {
	p := passer{to: netip.MustParseAddrPort(args[1])}
	p.at = descriptor(unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))
	if err := unix.Bind(p.at, &unix.SockaddrUnix{Name: "@" + args[0]}); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		fmt.Println(errnoWord(map[string]func(string) error{"make": p.makes, "give": p.gives, "take": p.takes, "own": p.owns}[verb](rest)))
	}
	return 0
}

func (p *passer) makes(what string) error {
	kind, ring := unix.SOCK_DGRAM, strings.HasSuffix(what, " ring")
	if strings.HasPrefix(what, "tcp") {
		kind = unix.SOCK_STREAM
	}
	var err error
	if p.fd, err = socketOf(unix.AF_INET, kind, 0, true); err != nil || !ring {
		return err
	}
	if p.ring, err = newRing(); err == nil {
		err = p.ring.register(p.fd)
	}
	unix.Close(p.fd)
	p.fd = p.ring.fd
	return err
}

// gives passes a socket that it made. A ring is not to be passed (EINVAL, Linux 6.7), but left: it says where.
func (p *passer) gives(to string) error {
	name := &unix.SockaddrUnix{Name: "@" + to}
	if p.ring != nil {
		about := fmt.Appendf(p.ring.p.bytes(), "%d %d", os.Getpid(), p.ring.fd)
		p.ring = nil
		return unix.Sendmsg(p.at, about, nil, name, 0)
	}
	err := unix.Sendmsg(p.at, []byte("x"), unix.UnixRights(p.fd), name, 0)
	unix.Close(p.fd)
	return err
}

// given is what somebody gave.
func (p *passer) given() (fd int, about ringParams, err error) {
	text, rights := make([]byte, 200), make([]byte, 100)
	n, m, _, _, err := unix.Recvmsg(p.at, text, rights, 0)
	if err != nil {
		return 0, about, err
	}
	if m == 0 {
		var pid int
		if _, err := fmt.Sscan(string(text[copy(about.bytes(), text):n]), &pid, &fd); err != nil {
			return 0, about, err
		}
		process, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return 0, about, err
		}
		defer unix.Close(process)
		fd, err = unix.PidfdGetfd(process, fd, 0)
		return fd, about, err
	}
	parts, err := unix.ParseSocketControlMessage(rights[:m])
	if err != nil {
		return 0, about, err
	}
	fds, err := unix.ParseUnixRights(&parts[0])
	if err != nil {
		return 0, about, err
	}
	return fds[0], about, nil
}

// takes uses what it is given.
func (p *passer) takes(what string) error {
	fd, about, err := p.given()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	to, _ := sockaddrOf(p.to)
	switch what {
	case "socket send":
		return dialled(fd, unix.Connect(fd, to))
	case "socket uring":
		r, err := newRing()
		if err == nil {
			err = r.register(fd)
		}
		if err != nil {
			return err
		}
		defer unix.Close(r.fd)
		r.with = sqeFixed
		return dialled(fd, orNil(r.connect(0, to)))
	}
	r := &ring{fd: fd, p: about}
	if err := r.open(); err != nil {
		return err
	}
	if what == "ring make" {
		return p.made(r)
	}
	r.with = sqeFixed
	return orNil(r.sendTo(0, []byte("x"), to))
}

// owns has a ring of its own make a socket.
func (p *passer) owns(way string) error {
	r, err := newRingOf(map[string]uint32{"poll": setupPoll}[way])
	if err != nil {
		return err
	}
	defer unix.Close(r.fd)
	r.with = map[string]byte{"async": sqeAsync}[way]
	return p.made(r)
}

func (p *passer) made(r *ring) error {
	fd := int(r.socket(unix.AF_INET, unix.SOCK_DGRAM))
	if fd < 0 {
		return unix.Errno(-fd)
	}
	defer unix.Close(fd)
	to, _ := sockaddrOf(p.to)
	return orNil(r.sendTo(fd, []byte("x"), to))
}

func dialled(fd int, err error) error {
	if err == nil {
		_, err = unix.Write(fd, []byte("x"))
	}
	if err == nil {
		err = answer(fd)
	}
	return err
}

func orNil(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
