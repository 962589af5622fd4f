package egress

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

func TestMain(m *testing.M) {
	// The main thread stays this goroutine's: those of others that change their namespace end with them.
	runtime.LockOSThread()
	os.Exit(netlab.Main(m, netlab.Children{"send": sendChild, "connect": connectChild, "refused": refusedChild}))
}

// sendChild sends so many datagrams for each number on its input, and prints the time that passed and
// the processor's, in nanoseconds.
func sendChild(args []string) int {
	to := netip.MustParseAddrPort(args[0])
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return answering(func() error { _, err := unix.Write(fd, []byte("x")); return err })
}

// connectChild does the same with TCP connections that are closed at once.
func connectChild(args []string) int {
	to := netip.MustParseAddrPort(args[0])
	return answering(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		// A reset at the end, so that no port is left waiting.
		unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		err = unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())})
		unix.Close(fd)
		if err == unix.EINTR {
			err = nil
		}
		return err
	})
}

func answering(do func() error) int {
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			return 2
		}
		start, cpu := time.Now(), processorTime()
		for range n {
			if err := do(); err != nil && err != unix.EINTR && err != unix.ENOBUFS {
				fmt.Println(err)
				return 1
			}
		}
		fmt.Println(time.Since(start).Nanoseconds(), (processorTime() - cpu).Nanoseconds())
	}
	return 0
}

func processorTime() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// refusedChild makes blocking connects to where its box may not (and where nobody is), and prints how long
// each took.
func refusedChild(args []string) int {
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			return 2
		}
		for range n {
			errno, took := netlab.Connect("tcp4", "10.97.0.3:443")
			if errno != unix.ECONNREFUSED {
				fmt.Println(errno)
				return 1
			}
			fmt.Print(took.Nanoseconds(), " ")
		}
		fmt.Println()
	}
	return 0
}

// sender is a process that sends when it is told.
type sender struct {
	name      string
	p         *netlab.Proc
	wall, cpu map[int][]float64 // nanoseconds for each packet, by slice and by size of the table
}

func (s *sender) slice(t testing.TB, size, n int) {
	t.Helper()
	took := s.ask(t, n)
	if len(took) != 2 {
		t.Fatalf("%s: %v", s.name, took)
	}
	s.wall[size], s.cpu[size] = append(s.wall[size], took[0]/float64(n)), append(s.cpu[size], took[1]/float64(n))
}

// ask has it send, and returns the numbers that it prints.
func (s *sender) ask(t testing.TB, n int) []float64 {
	t.Helper()
	s.p.Say(strconv.Itoa(n))
	var out []float64
	for _, f := range strings.Fields(s.p.Line()) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		out = append(out, v)
	}
	return out
}

// at is the value below which a part of them is.
func at(v []float64, part float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[int(float64(len(s)-1)*part)]
}
