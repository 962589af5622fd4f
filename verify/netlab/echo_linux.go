package netlab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Echo starts an echo server in this process ("tcp" or "udp", port 0 for any) whose packets carry the
// mark, and returns its address. It ends with the test.
func Echo(t testing.TB, network, address string, mark uint32) string {
	t.Helper()
	stop, at, err := serve(network, address, mark)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop.Close() })
	return at
}

// EchoIn starts one in a process that starts as s says: in a leaf, say. Its sockets are born there.
func EchoIn(t testing.TB, s Spawn, network, address string, mark uint32) (string, *Proc) {
	t.Helper()
	p := Start(t, s, "netlab-serve", network, address, strconv.FormatUint(uint64(mark), 10))
	return p.Line(), p
}

func serveChild(args []string) int {
	mark, err := strconv.ParseUint(args[2], 10, 32)
	if err == nil {
		var at string
		if _, at, err = serve(args[0], args[1], uint32(mark)); err == nil {
			fmt.Println(at)
			io.Copy(io.Discard, os.Stdin)
			return 0
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func serve(network, address string, mark uint32) (io.Closer, string, error) {
	// Accepted sockets inherit the mark of the listener, and so do SYN-ACKs.
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var set error
		err := c.Control(func(fd uintptr) {
			if mark != 0 {
				set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, int(mark))
			}
		})
		return errors.Join(err, set)
	}}
	lc.SetMultipathTCP(false)
	if strings.HasPrefix(network, "udp") {
		pc, err := lc.ListenPacket(context.Background(), network, address)
		if err != nil {
			return nil, "", err
		}
		go echoPackets(pc)
		return pc, pc.LocalAddr().String(), nil
	}
	l, err := lc.Listen(context.Background(), network, address)
	if err != nil {
		return nil, "", err
	}
	go echoStreams(l)
	return l, l.Addr().String(), nil
}

func echoPackets(pc net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		n, from, err := pc.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			pc.WriteTo(buf[:n], from)
		}
	}
}

func echoStreams(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			io.Copy(c, c)
		}()
	}
}
