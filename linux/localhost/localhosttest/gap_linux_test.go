package localhosttest

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/linux/localhost"
	"github.com/gominimal/minhost/verify/netlab"
)

// TestReplacedWithoutGap: versions take turns under a box that binds and dials all the time what the host has too. No
// call of it goes to the host, and nobody gets the box's address.
func TestReplacedWithoutGap(t *testing.T) {
	w := newTown(t)
	leaf := w.box(1, nil)
	host := start(t, netlab.Spawn{Leaf: netlab.NoLeaf})
	for i, port := range []int{3800, 3801} {
		host.want("ok", "s%d socket tcp4", i)
		host.want("ok", "s%d bind 127.0.0.1:%d", i, port)
		host.want("ok", "s%d listen", i)
	}
	inside := netlab.Start(t, netlab.Spawn{Leaf: leaf, UID: somebody}, "without gap")
	outside := netlab.Start(t, netlab.Spawn{Leaf: netlab.NoLeaf, UID: somebody}, "without gap", "outside")
	for _, p := range []*netlab.Proc{inside, outside} {
		if line := p.Line(); line != "ready" {
			t.Fatal(line)
		}
	}
	other := version(t, w.tree, func(c *localhost.Config) {
		c.Multipath = !c.Multipath
		c.Marks = localhost.Marks{Sent: 1 << 30, Admit: 1}
	})
	const turns = 100
	for range turns {
		for _, s := range []*localhost.Set{other, w.set} {
			if err := s.Apply(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, p := range map[string]*netlab.Proc{"inside": inside, "outside": outside} {
		p.Say("enough")
		line := p.Line()
		tried, wrong, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(tried)
		if err != nil || n < turns || wrong != "" {
			t.Errorf("%s: %s", name, line)
		}
	}
}

// gapChild binds and dials until its input ends, and prints how often, and what went wrong first.
func gapChild(args []string) int {
	try := outsideOnce
	if len(args) == 0 {
		own, err := listen("127.0.0.1:3801")
		if err != nil {
			fmt.Println(err)
			return 1
		}
		try = func() string { return insideOnce(own) }
	}
	enough := make(chan bool)
	fmt.Println("ready")
	go func() {
		bufio.NewScanner(os.Stdin).Scan()
		close(enough)
	}()
	wrong := ""
	for n := 0; ; n++ {
		select {
		case <-enough:
			fmt.Println(strings.TrimSpace(fmt.Sprint(n, " ", wrong)))
			return 0
		default:
		}
		if got := try(); got != "" && wrong == "" {
			wrong = fmt.Sprintf("%d: %s", n, got)
		}
	}
}

// insideOnce binds the port of a listener of the host, and dials one of its own that the host has too.
func insideOnce(own int) string {
	fd, err := listen("127.0.0.1:3800")
	if err != nil {
		return fmt.Sprintf("bind: %v", err)
	}
	name := text(unix.Getsockname(fd))
	unix.Close(fd)
	if name != "127.0.0.1:3800" {
		return "bound at " + name
	}
	c, err := form{Kind: "stream"}.open()
	if err != nil {
		return err.Error()
	}
	defer unix.Close(c)
	unix.SetsockoptLinger(c, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	if err := unix.Connect(c, endpoint("127.0.0.1:3801")); err != nil {
		return fmt.Sprintf("connect: %v", err)
	}
	if peer := text(unix.Getpeername(c)); peer != "127.0.0.1:3801" {
		return "connected to " + peer
	}
	if !readable(own, 2*time.Second) {
		return "the host was reached"
	}
	a, _, err := unix.Accept(own)
	if err != nil {
		return err.Error()
	}
	unix.Close(a)
	return ""
}

// outsideOnce binds the address of the box, which it must not get.
func outsideOnce() string {
	fd, err := listen("127.0.64.1:3802")
	if err == nil {
		unix.Close(fd)
		return "bound"
	}
	if errno(err) != "EPERM" {
		return err.Error()
	}
	return ""
}

func listen(at string) (int, error) {
	fd, err := form{Kind: "stream"}.open()
	if err == nil {
		err = unix.Bind(fd, endpoint(at))
	}
	if err == nil {
		err = unix.Listen(fd, 16)
	}
	if err != nil {
		unix.Close(fd)
	}
	return fd, err
}
