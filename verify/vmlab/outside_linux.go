package vmlab

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
)

// The outside world, as machines see it, and the machine itself (the root's 50-lab.network).
const (
	Outside, Outside6 = "198.51.100.1", "2001:db8:51::1"
	Inside, Inside6   = "198.51.100.2", "2001:db8:51::2"
)

// link is the outer end of the machine's eth0. One machine at a time is plugged in.
const link = "lab0"

// outside removes what an earlier machine left; its link dies with its network namespace, a moment
// after its last process.
func outside(t testing.TB) {
	t.Helper()
	_ = exec.Command("ip", "link", "del", link).Run() // mostly not there
}

// plug makes the cable between the test's network and the machine's.
func (m *Machine) plug() {
	m.t.Helper()
	outside(m.t)
	for _, args := range [][]string{
		{"link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(m.init)},
		{"address", "add", Outside + "/24", "dev", link},
		{"-6", "address", "add", Outside6 + "/64", "dev", link, "nodad"},
		{"link", "set", link, "up"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			m.t.Fatalf("ip %v: %v\n%s", args, err, out)
		}
	}
}

// Server is an echo server outside that counts who reached it: connections accepted, or datagrams.
type Server struct {
	Port int
	hits atomic.Int64
}

// Hits is how many reached it so far.
func (s *Server) Hits() int64 { return s.hits.Load() }

// Addr and Addr6 are what a machine calls it.
func (s *Server) Addr() string  { return net.JoinHostPort(Outside, strconv.Itoa(s.Port)) }
func (s *Server) Addr6() string { return net.JoinHostPort(Outside6, strconv.Itoa(s.Port)) }

// TCP starts one on every address of the outside world; it ends with the test.
func TCP(t testing.TB, port int) *Server {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("[::]:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &Server{Port: port}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.hits.Add(1)
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	return s
}

// UDP starts one for datagrams.
func UDP(t testing.TB, port int) *Server {
	t.Helper()
	c, err := net.ListenPacket("udp", fmt.Sprintf("[::]:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s := &Server{Port: port}
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			s.hits.Add(1)
			c.WriteTo(b[:n], from)
		}
	}()
	return s
}

// Inode is the id of a cgroup below the machine's root: a directory that was made again has another.
func (m *Machine) Inode(cgroup string) uint64 {
	m.t.Helper()
	info, err := os.Stat(m.group + "/" + cgroup)
	if err != nil {
		m.t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}
