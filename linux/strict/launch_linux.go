package strict

import (
	"encoding/binary"
	"encoding/gob"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Command is the hidden subcommand under which the program must call Main.
const Command = "strict-init"

// Descriptors of process 1 beside the standard ones; the target's own follow.
const (
	programFD = 3
	eventFD   = 4
	filesFD   = 5
)

// namespaces that a target gets. The network's is the host's.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWCGROUP

// passed are the signals that go to the target.
func passed() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGTSTP}
}

// catch gives the passed signals, but for those that this program was started to ignore: they stay
// ignored, for the target too.
func catch() chan os.Signal {
	c := make(chan os.Signal, 64)
	for _, s := range passed() {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // whoever watched may be gone
	return c
}

// Launch starts a program and returns its exit status when it has ended; 128 and the signal when one
// ended it. Standard files and working directory are this process's. files become the target's from
// 3 on. Signals to this process go to the target. An error means that nothing of the target ran and
// nothing is left. To be called by the thread of main, locked; this process has no other children.
func Launch(p Program, files []int, w Watcher) (status int, err error) {
	p.Files = len(files)
	signals := catch()
	defer signal.Stop(signals)
	events, init, err := start(p, files)
	if err != nil {
		return 0, &Error{"make namespaces", err}
	}
	defer events.Close()
	done := make(chan struct{})
	gone := forward(signals, init, done)
	status, err = watch(events, w)
	close(done)
	<-gone // its number is not used behind the wait
	_, _ = syscall.Wait4(init, nil, 0, nil)
	return status, err
}

// forward passes signals on until done; the channel that it returns is closed then.
func forward(signals chan os.Signal, to int, done chan struct{}) (gone chan struct{}) {
	gone = make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case s := <-signals:
				_ = syscall.Kill(to, s.(syscall.Signal))
			case <-done:
				return
			}
		}
	}()
	return gone
}

// start starts process 1 and gives it the program. It takes the files when it succeeds.
func start(p Program, files []int) (events *os.File, init int, err error) {
	programRead, program, err := os.Pipe()
	if err != nil {
		return nil, 0, err
	}
	defer program.Close()
	defer programRead.Close()
	events, eventsWrite, err := os.Pipe()
	if err != nil {
		return nil, 0, err
	}
	defer eventsWrite.Close()
	given := []uintptr{0, 1, 2, programRead.Fd(), eventsWrite.Fd()}
	for _, fd := range files {
		given = append(given, uintptr(fd))
	}
	init, err = syscall.ForkExec("/proc/self/exe", []string{os.Args[0], Command}, &syscall.ProcAttr{
		Env: []string{}, Files: given, Sys: attributes(p.Spec),
	})
	if err != nil {
		events.Close()
		return nil, 0, err
	}
	for _, fd := range files {
		unix.Close(fd)
	}
	// Of a process 1 that does not read it the end is told by the events.
	_ = gob.NewEncoder(program).Encode(p)
	return events, init, nil
}

// attributes are those of process 1. Its user namespace has one account, the caller's own; root needs
// none. It leads the session of its terminal, so that the target, in a group of its own, is a job as
// a shell has them.
func attributes(s Spec) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true, Setctty: s.Terminal}
	if s.Bare {
		return a
	}
	a.Cloneflags = namespaces
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // to mount: execution takes all others
	}
	return a
}

// watch reads the events of process 1: a letter, a value, and with a failure its text.
func watch(events io.Reader, w Watcher) (status int, err error) {
	running := false
	for {
		var head [9]byte
		_, err := io.ReadFull(events, head[:])
		text := make([]byte, min(binary.LittleEndian.Uint32(head[5:]), 1024))
		if err == nil {
			_, err = io.ReadFull(events, text)
		}
		value := binary.LittleEndian.Uint32(head[1:])
		switch {
		case err != nil && !running:
			return 0, &Error{"make namespaces", errors.New("process 1 ended")}
		case err != nil: // killed with its process 1
			return ended(w, syscall.WaitStatus(syscall.SIGKILL)), nil
		case head[0] == eventFailed:
			return 0, errors.New(string(text))
		case head[0] == eventRunning:
			running = true
			detach()
			w.Running()
		case head[0] == eventRefused:
			w.Refused(syscall.Errno(value))
			return 126, nil
		case head[0] == eventStopped:
			w.Stopped(syscall.Signal(value))
		case head[0] == eventEnded:
			return ended(w, syscall.WaitStatus(value)), nil
		}
	}
}

func ended(w Watcher, s syscall.WaitStatus) (status int) {
	w.Ended(s)
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// detach lets go of the standard files: a reader of the target's output sees its end when the target
// closes it.
func detach() {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	for fd := range 3 {
		_ = unix.Dup3(null, fd, 0)
	}
	unix.Close(null)
}
