package standalone

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// process is one process held by a pidfd: a number that is reused later is never signalled.
type process struct {
	pid int
	fd  int
}

// openProcess fails with unix.ESRCH when there is no such process.
func openProcess(pid int) (*process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	return &process{pid, fd}, nil
}

func (p *process) close() { unix.Close(p.fd) }

func (p *process) signal(s unix.Signal) error {
	err := unix.PidfdSendSignal(p.fd, s, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// wait returns nil once the process has ended (a zombie has), or the context's error.
func (p *process) wait(ctx context.Context) error {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, 20)
		switch {
		case n > 0:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// end asks the process to end, and makes it after a grace.
func (p *process) end(ctx context.Context, grace time.Duration) error {
	soft, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if err := p.signal(unix.SIGTERM); err != nil {
		return fmt.Errorf("end process %d: %w", p.pid, err)
	}
	if p.wait(soft) == nil {
		return nil
	}
	if err := p.signal(unix.SIGKILL); err != nil {
		return fmt.Errorf("end process %d: %w", p.pid, err)
	}
	hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := p.wait(hard); err != nil {
		return fmt.Errorf("end process %d: still there after SIGKILL: %w", p.pid, err)
	}
	return nil
}

// find opens the child that a note speaks of; nil when it has ended.
func (n note) find() (*process, error) {
	p, err := openProcess(n.pid)
	if errors.Is(err, unix.ESRCH) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", n.pid, err)
	}
	// Read after the open: from here on the number means what the descriptor means.
	start, err := startTime(n.pid)
	if err != nil || start != n.start {
		p.close()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		return nil, nil
	}
	return p, nil
}

// endNoted ends the children that an earlier supervisor left, the helper first.
func endNoted(ctx context.Context, l *lock, told func(note)) error {
	var errs []error
	for _, n := range l.notes() {
		p, err := n.find()
		if err != nil {
			errs = append(errs, err)
		}
		if p == nil {
			continue
		}
		told(n)
		errs = append(errs, p.end(ctx, termWait))
		p.close()
	}
	return errors.Join(errs...)
}
