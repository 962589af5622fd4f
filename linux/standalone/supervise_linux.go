package standalone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// failedStarts is how often a program may die before it was ever ready until a waiting Start is
// told. The supervisor itself goes on trying.
const failedStarts = 3

// Supervise is `minhost supervise`. It returns after SIGTERM, SIGINT or the end of the context, with
// both programs stopped and the socket removed; or at once when it cannot begin. readyFD, when not
// 0, is where it writes one line: "ready", or "failed: CAUSE".
func Supervise(ctx context.Context, c Config, readyFD int) error {
	report := reporter(readyFD)
	err := supervise(ctx, c, report)
	if err != nil {
		report(err)
	}
	return err
}

func supervise(ctx context.Context, c Config, report func(error)) error {
	if err := c.check(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// A hangup is for whoever sat at the terminal. Caught, not ignored: children inherit the latter.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	syscall.Umask(0o022)
	if err := errors.Join(closeOnExec(firstFD), prepareRun(c.Run)); err != nil {
		return err
	}
	l, err := takeLock(c.Lock)
	if err != nil {
		return err
	}
	defer l.release()
	if err := enterCgroup(c.Holder); err != nil {
		return err
	}
	file, err := openLog(c.Log)
	if err != nil {
		return err
	}
	defer file.file.Close()
	log := slog.New(slog.NewTextHandler(file, nil)).With("from", "supervise")
	err = hold(ctx, c, l, file, log, report)
	if err != nil {
		log.Error("ends", "cause", err)
	}
	return err
}

// hold takes over from a dead supervisor, makes the sockets and keeps the programs running.
func hold(ctx context.Context, c Config, l *lock, file *logFile, log *slog.Logger, report func(error)) error {
	log.Info("begins", "pid", os.Getpid(), "program", c.Program)
	if err := endNoted(ctx, l, func(n note) {
		log.Warn("ending what an earlier supervisor left", "role", n.role, "pid", n.pid)
	}); err != nil {
		return err
	}
	notify, err := listenNotify(c.notifyPath())
	if err != nil {
		return err
	}
	defer notify.close()
	answerer, err := listenAnswerer(ctx, c.Answerer, log)
	if err != nil {
		return err
	}
	defer closeAll(answerer)
	helper, err := listenHelper(c.Socket)
	if err != nil {
		return err
	}
	defer helper.Close()

	events := make(chan event, 16)
	w := [2]*worker{
		{role: HelperFDName, slot: 0, argv: c.HelperArgs, sockets: []*os.File{helper}},
		{role: AnswererFDName, slot: 1, argv: c.AnswererArgs, sockets: answerer, uid: c.UID, gid: c.GID},
	}
	for _, w := range w {
		w.program, w.notify, w.execArgs = c.Program, c.notifyPath(), c.ExecArgs
		w.lock, w.out, w.log, w.events = l, file.file, log, events
	}
	go notify.receive(func(m notice) { hear(w[:], m, events) })
	stop := launch(w)
	watch(ctx, events, file, log, report)
	log.Info("stops")
	// The socket first: nobody gets a helper that is about to go.
	removed := os.Remove(c.Socket)
	go drain(events)
	stop()
	return removed
}

// hear takes what a worker's child says, and nobody else.
func hear(all []*worker, m notice, events chan<- event) {
	for _, w := range all {
		if w.pid.Load() != int64(m.pid) {
			continue
		}
		if m.ready {
			events <- event{role: w.role, ready: true}
		}
		if m.keep != nil {
			m.keep = w.kept.Swap(m.keep)
		}
	}
	if m.keep != nil {
		m.keep.Close()
	}
}

// launch runs the workers and returns the function that stops them: the helper first, which may
// still publish names, then the answerer.
func launch(w [2]*worker) (stop func()) {
	var cancels [len(w)]context.CancelFunc
	var groups [len(w)]sync.WaitGroup
	for i, one := range w {
		// Not the caller's context: the order of stopping is ours.
		ctx, cancel := context.WithCancel(context.Background())
		cancels[i] = cancel
		groups[i].Go(func() { one.run(ctx) })
	}
	return func() {
		for i := range w {
			cancels[i]()
			groups[i].Wait()
		}
	}
}

// watch follows the events until the context ends. It reports once: when both were ready, or when
// one keeps dying before it ever was.
func watch(ctx context.Context, events <-chan event, file *logFile, log *slog.Logger, report func(error)) {
	ready, failed := map[string]bool{}, map[string]int{}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := file.trim(maxLog); err != nil {
				log.Error("log", "cause", err)
			}
		case e := <-events:
			if e.ready {
				log.Info("ready", "role", e.role)
				ready[e.role] = true
				if len(ready) == 2 {
					report(nil)
				}
				continue
			}
			if failed[e.role]++; !ready[e.role] && failed[e.role] == failedStarts {
				report(fmt.Errorf("%s does not start: %w; look: tail %s", e.role, e.err, file.path))
			}
		}
	}
}

// drain takes what nobody reads any more, so that no worker waits for a reader.
func drain(events <-chan event) {
	for range events {
	}
}

// reporter writes the first result to the descriptor and nothing after it.
func reporter(fd int) func(error) {
	if fd <= 0 {
		return func(error) {}
	}
	f := os.NewFile(uintptr(fd), "ready")
	var once sync.Once
	return func(err error) {
		once.Do(func() {
			if f == nil {
				return
			}
			defer f.Close()
			if err != nil {
				fmt.Fprintf(f, "failed: %v\n", err)
				return
			}
			fmt.Fprintln(f, "ready")
		})
	}
}
