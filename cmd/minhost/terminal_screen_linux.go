package main

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/linux/pty"
)

// screen is a terminal of the program's own, shown on the caller's: the program cannot type into
// that one, nor change how it behaves. A nil screen is none; its methods do nothing.
type screen struct {
	in, out       *os.File // the caller's terminal
	master, slave *os.File
	shown         chan struct{} // closed when all output is written

	mu     sync.Mutex
	before *pty.Mode // of the caller's terminal, while it is raw
	left   bool      // it is another's until enter, though this program may still be in front
}

// openScreen makes one when asked to, or when unasked and standard input and output are a terminal.
func openScreen(asked *bool, in, out *os.File) (*screen, error) {
	at := pty.Is(in) && pty.Is(out)
	if asked != nil && !*asked || asked == nil && !at {
		return nil, nil
	}
	master, slave, err := pty.Open()
	if err != nil {
		return nil, err
	}
	if at {
		pty.Resize(master, in)
	}
	return &screen{in: in, out: out, master: master, slave: slave, shown: make(chan struct{})}, nil
}

// instead gives f, or the program's terminal in its place where f is a terminal, or always when the
// caller has none there.
func (s *screen) instead(f *os.File) *os.File {
	if s == nil || f != nil && !pty.Is(f) && pty.Is(s.in) {
		return f
	}
	return s.slave
}

// start shows and types from now on. The program has its end open already.
func (s *screen) start() {
	if s == nil {
		return
	}
	s.slave.Close()
	s.enter()
	go func() {
		defer close(s.shown)
		_, _ = io.Copy(showing{s}, s.master) // ends with an error when nobody has the other end
	}()
	go s.typeOn()
}

// showing writes on the caller's terminal, which begins lines by itself as long as it is not raw.
type showing struct{ *screen }

func (s showing) Write(b []byte) (int, error) {
	s.mu.Lock()
	raw := s.before != nil
	s.mu.Unlock()
	text := b
	if !raw && pty.Is(s.out) {
		text = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	}
	if _, err := s.out.Write(text); err != nil {
		return 0, err
	}
	return len(b), nil
}

// typeOn passes on what is typed, while this program may read the terminal: in the background it would
// be stopped by reading, though the program may want nothing. Nobody tells a job that it is in front
// again (bash sends no SIGCONT to one that runs).
func (s *screen) typeOn() {
	buf := make([]byte, 4096)
	fds := []unix.PollFd{{Fd: int32(s.in.Fd()), Events: unix.POLLIN}}
	for {
		if !pty.Foreground(s.in) {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		s.take()
		if n, err := unix.Poll(fds, 100); n <= 0 || !pty.Foreground(s.in) {
			if err != nil && err != unix.EINTR {
				return
			}
			continue
		}
		n, err := unix.Read(int(fds[0].Fd), buf)
		if n > 0 {
			_, err = s.master.Write(buf[:n])
		} else if err == nil {
			_, _ = s.master.Write([]byte{4}) // the end of the input, as a terminal says it
			return
		}
		if err != nil && err != unix.EINTR {
			return
		}
	}
}

// enter uses the caller's terminal from now on, at the start and when the job goes on.
func (s *screen) enter() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.left = false
	s.mu.Unlock()
	s.take()
}

// take makes the caller's terminal raw, if this program is in front. Not between leave and enter: a job
// that is about to stop is in front until it has, and its shell would get a raw terminal.
func (s *screen) take() {
	if !pty.Is(s.in) || !pty.Foreground(s.in) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left || s.before != nil {
		return
	}
	if before, err := pty.Raw(s.in); err == nil {
		s.before = &before
	}
}

// leave gives the terminal its mode back, until enter, and says whether this program was in front.
func (s *screen) leave() (was bool) {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was = pty.Foreground(s.in)
	if s.before != nil && was {
		_ = s.before.Set(s.in)
	}
	s.before, s.left = nil, true
	return was
}

// resize gives the program's terminal the size of the caller's.
func (s *screen) resize() {
	if s != nil {
		pty.Resize(s.master, s.in)
	}
}

// finish shows what is left and leaves. What does not come within a second is a process's that has
// nothing to do with the program any more.
func (s *screen) finish() (was bool) {
	if s == nil {
		return false
	}
	if s.slave.Close() == nil {
		return false // never started
	}
	select {
	case <-s.shown:
	case <-time.After(time.Second):
	}
	return s.leave()
}
