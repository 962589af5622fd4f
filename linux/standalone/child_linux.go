package standalone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// worker keeps one program running.
type worker struct {
	role     string // "helper" or "answerer"; also the name of its sockets
	slot     int    // of its note in the lock file
	argv     []string
	uid, gid int // 0: stays root
	sockets  []*os.File

	program, notify string
	execArgs        []string
	lock            *lock
	out             *os.File
	log             *slog.Logger

	pid    atomic.Int64            // of the running child, 0 between two
	kept   atomic.Pointer[os.File] // what a child wants the next one to have
	events chan<- event
}

// event is one thing that happened to a worker's child.
type event struct {
	role  string
	ready bool
	err   error // why it ended, when not ready
}

// run starts the program again and again until the context ends, and ends it then.
func (w *worker) run(ctx context.Context) {
	var wait backoff
	for ctx.Err() == nil {
		began := time.Now()
		err := w.once(ctx)
		if ctx.Err() != nil {
			break
		}
		pause := wait.after(time.Since(began))
		w.log.Warn("ended", "role", w.role, "cause", err, "again_in", pause)
		w.events <- event{role: w.role, err: err}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	w.log.Info("stopped", "role", w.role)
}

// once starts the program and waits for its end; the error is never nil.
func (w *worker) once(ctx context.Context) error {
	cmd, gate, err := w.start()
	if err != nil {
		return err
	}
	defer gate.Close()
	pid := cmd.Process.Pid
	ended := make(chan error, 1)
	w.pid.Store(int64(pid))
	go func() { ended <- cmd.Wait() }()
	defer w.pid.Store(0)
	start, err := startTime(pid)
	if err == nil {
		err = w.lock.write(w.slot, note{w.role, pid, start})
	}
	if err == nil {
		_, err = gate.Write([]byte{1})
	}
	if err != nil {
		gate.Close()
		<-ended
		return fmt.Errorf("start %s: %w", w.role, err)
	}
	w.log.Info("started", "role", w.role, "pid", pid)
	select {
	case err := <-ended:
		if err == nil {
			err = errors.New("exit status 0")
		}
		return err
	case <-ctx.Done():
	}
	return w.end(cmd.Process, ended)
}

// end asks, waits, and kills.
func (w *worker) end(p *os.Process, ended <-chan error) error {
	p.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		return err
	case <-time.After(termWait):
	}
	w.log.Warn("does not end, killed", "role", w.role, "pid", p.Pid)
	p.Kill()
	return <-ended
}

// start forks the program behind a gate: it becomes itself only after its pid is written down, so
// whatever runs can be found again by the next supervisor.
func (w *worker) start() (*exec.Cmd, *os.File, error) {
	hold, gate, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer hold.Close()
	names, files := strings.TrimSuffix(strings.Repeat(w.role+",", len(w.sockets)), ","), append([]*os.File{}, w.sockets...)
	if f := w.kept.Load(); f != nil {
		names, files = names+","+f.Name(), append(files, f)
	}
	args := append([]string{}, w.execArgs...)
	args = append(args, "--names="+names, "--gate")
	if w.uid != 0 {
		args = append(args, "--uid="+strconv.Itoa(w.uid), "--gid="+strconv.Itoa(w.gid))
	}
	args = append(append(args, "--", w.program), w.argv...)
	cmd := &exec.Cmd{
		Path:       w.program,
		Args:       append([]string{w.program}, args...),
		Dir:        "/",
		Env:        append(env(), "NOTIFY_SOCKET="+w.notify),
		Stdout:     w.out,
		Stderr:     w.out,
		ExtraFiles: append(files, hold),
		// A group of its own: Ctrl-C at a supervisor in the foreground is for the supervisor.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if err := cmd.Start(); err != nil {
		gate.Close()
		return nil, nil, fmt.Errorf("start %s: %w", w.role, err)
	}
	return cmd, gate, nil
}

// enterCgroup moves the supervisor, before it has children, into the holder's place.
func enterCgroup(dir string) error {
	if dir == "" {
		return nil
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("enter %s: %w", dir, err)
	}
	defer unix.Close(fd)
	procs, err := unix.Openat(fd, "cgroup.procs", unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("enter %s: %w", dir, err)
	}
	defer unix.Close(procs)
	if _, err := unix.Write(procs, []byte("0")); err != nil {
		return fmt.Errorf("enter %s: %w", dir, err)
	}
	return nil
}
