package proc

import (
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// Pin keeps the number of the process from being given to another one until unpin, although the process may
// die meanwhile: who traces a process is asked before it is reaped. Ask Alive behind it: a process that lives
// then keeps its number; one that is dead may have lost it before, and what was traced for a moment was
// another's.
//
// PTRACE_SEIZE (kernel 3.4) stops nothing and changes nothing for the process. A signal that comes meanwhile waits
// for unpin. It fails for a process that has a tracer already, and where the host forbids it (Yama's
// ptrace_scope 3, a security module): then there is no pin. Needs CAP_SYS_PTRACE.
func (p *Process) Pin() (unpin func(), err error) {
	pinned, release := make(chan error, 1), make(chan struct{})
	go onThreadThatEnds(func() bool {
		err := unix.PtraceSeize(p.pid)
		pinned <- err
		if err == nil {
			<-release
		}
		return err == nil
	})
	if err := <-pinned; err != nil {
		return nil, fmt.Errorf("process %d: pin: %w", p.pid, classify(p.pid, err))
	}
	return sync.OnceFunc(func() { close(release) }), nil
}

// onThreadThatEnds runs f; when it returns true the thread that it ran on ends. A tracer is a thread, and to
// detach by request wants a stopped process; a thread that ends detaches without (ptrace(2)). A goroutine that
// is still locked takes its thread along, but never the main one, which the runtime keeps.
func onThreadThatEnds(f func() bool) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			onThreadThatEnds(f)
		}()
		<-done // keeps the main thread taken, so that the other goroutine has another one
		runtime.UnlockOSThread()
		return
	}
	if !f() {
		runtime.UnlockOSThread()
	}
}
