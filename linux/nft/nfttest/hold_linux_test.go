package nfttest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// holdChild opens flows and listeners ("tcp ADDR", "own ADDR" from that address, "udp ADDR", "listen ADDR N"), says "ready", and says
// for each line of its input how all of them are: "ok" when an octet comes back, else the errno. A
// listener shows the N flows that it accepted as well, behind a comma.
func holdChild(args []string) int {
	var all []*held
	for _, a := range args {
		f := strings.Fields(a)
		h := &held{network: f[0]}
		var err error
		d := net.Dialer{Timeout: netlab.Patience(time.Second)}
		switch f[0] {
		case "listen":
			h.wanted, _ = strconv.Atoi(f[2])
			err = h.listen(f[1])
		case "own":
			d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddrPort(f[1]).Addr(), 0))
			h.c, err = d.Dial("tcp", f[1])
		default:
			h.c, err = d.Dial(f[0], f[1])
		}
		if err != nil {
			fmt.Println(a, err)
			return 1
		}
		all = append(all, h)
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var said []string
		for _, h := range all {
			said = append(said, h.say())
		}
		fmt.Println(strings.Join(said, " "))
	}
	return 0
}

type held struct {
	network string
	c       net.Conn
	l       net.Listener
	taken   chan net.Conn
	wanted  int
	old     []net.Conn
}

func (h *held) listen(address string) (err error) {
	h.taken = make(chan net.Conn, 10)
	if h.l, err = net.Listen("tcp", address); err != nil {
		return err
	}
	go func() {
		for {
			c, err := h.l.Accept()
			if err != nil {
				return
			}
			h.taken <- c
		}
	}()
	return nil
}

func (h *held) say() string {
	if h.l == nil {
		return octet(h.c)
	}
	for len(h.old) < h.wanted {
		h.old = append(h.old, <-h.taken)
	}
	said := "listening"
	for _, c := range h.old { // the other side speaks first
		c.SetDeadline(time.Now().Add(netlab.Patience(300 * time.Millisecond)))
		_, err := io.ReadFull(c, make([]byte, 1))
		if err == nil {
			_, err = c.Write([]byte("x"))
		}
		said += "," + word(err)
	}
	return said
}

func octet(c net.Conn) string {
	c.SetDeadline(time.Now().Add(netlab.Patience(300 * time.Millisecond)))
	_, err := c.Write([]byte("x"))
	if err == nil {
		_, err = io.ReadFull(c, make([]byte, 1))
	}
	return word(err)
}

func word(err error) string {
	var errno unix.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "silence"
	}
	return err.Error()
}
