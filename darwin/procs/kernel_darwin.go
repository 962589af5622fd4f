package procs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Kernel is the Table of the host. Make it with New.
type Kernel struct {
	queue int // kqueue: the end of every process that somebody waits for

	mu      sync.Mutex
	waiting map[int]map[chan struct{}]bool // by pid
}

var _ Table = (*Kernel)(nil)

// Of <sys/proc.h>. A process that ends has exiting from the first, then nobody can watch it any more, then
// who watched it is told (NOTE_EXIT), and only then is it a zombie (xnu 11417, bsd/kern/kern_exit.c): who
// looked for zombies alone would find it alive behind its own end.
const (
	zombie  = 5      // SZOMB of p_stat
	exiting = 0x2000 // P_WEXIT of p_flag
)

// New opens the queue and reads it in a goroutine of its own until the process ends.
func New() (*Kernel, error) {
	queue, err := unix.Kqueue()
	if err != nil {
		return nil, fmt.Errorf("kqueue: %w", err)
	}
	unix.CloseOnExec(queue)
	k := &Kernel{queue: queue, waiting: map[int]map[chan struct{}]bool{}}
	go k.read()
	return k, nil
}

// Info implements Table.
func (k *Kernel) Info(pid int) (Info, error) {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	switch {
	case errors.Is(err, unix.EIO), errors.Is(err, unix.ESRCH): // EIO: the answer was empty
		return Info{}, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	case err != nil:
		return Info{}, fmt.Errorf("process %d: %w", pid, err)
	case p.Proc.P_stat == zombie || p.Proc.P_flag&exiting != 0 || int(p.Proc.P_pid) != pid:
		return Info{}, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	start := p.Proc.P_starttime
	return Info{
		PID: pid, Parent: int(p.Eproc.Ppid), Group: int(p.Eproc.Pgid),
		UIDs:  [3]uint32{p.Eproc.Pcred.P_ruid, p.Eproc.Ucred.Uid, p.Eproc.Pcred.P_svuid},
		Start: fmt.Sprintf("%d.%06d", start.Sec, start.Usec),
	}, nil
}

// recheck is how often Wait looks for itself: a queue that forgot an event must not keep a box for ever.
const recheck = 30 * time.Second

// Wait implements Table. It asks for the event first and looks at the process then: an end in between is
// seen by one of both. ESRCH is the answer for a process that ends as well as for one that has ended.
func (k *Kernel) Wait(ctx context.Context, pid int, start string) error {
	ended := make(chan struct{}, 1)
	k.enter(pid, ended)
	defer k.leave(pid, ended)
	for {
		err := k.watch(pid)
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("watch process %d: %w", pid, err)
		}
		if same, err := Same(k, pid, start); err != nil || !same {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
		case <-time.After(recheck):
		}
	}
}

// watch asks for one event: NOTE_EXIT comes when the process ends, whoever its parent is.
func (k *Kernel) watch(pid int) error {
	var e unix.Kevent_t
	unix.SetKevent(&e, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	e.Fflags = unix.NOTE_EXIT
	_, err := unix.Kevent(k.queue, []unix.Kevent_t{e}, nil, nil)
	return err
}

func (k *Kernel) enter(pid int, ended chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.waiting[pid] == nil {
		k.waiting[pid] = map[chan struct{}]bool{}
	}
	k.waiting[pid][ended] = true
}

func (k *Kernel) leave(pid int, ended chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.waiting[pid], ended)
	if len(k.waiting[pid]) == 0 {
		delete(k.waiting, pid)
	}
}

// read wakes who waits. Somebody who waits for another process of the same pid looks, and waits on.
func (k *Kernel) read() {
	events := make([]unix.Kevent_t, 16)
	for {
		n, err := unix.Kevent(k.queue, nil, events, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return // Wait goes on by looking
		}
		k.mu.Lock()
		for _, e := range events[:n] {
			for ended := range k.waiting[int(e.Ident)] {
				select {
				case ended <- struct{}{}:
				default:
				}
			}
		}
		k.mu.Unlock()
	}
}
