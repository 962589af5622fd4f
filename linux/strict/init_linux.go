package strict

import (
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Events of process 1.
const (
	eventFailed  = 'f'
	eventRunning = 'r'
	eventRefused = 'x'
	eventStopped = 's'
	eventEnded   = 'e'
)

func tell(kind byte, value uint32, text string) {
	text = text[:min(len(text), 1024)]
	b := append([]byte{kind}, make([]byte, 8)...)
	binary.LittleEndian.PutUint32(b[1:], value)
	binary.LittleEndian.PutUint32(b[5:], uint32(len(text)))
	_, _ = unix.Write(eventFD, append(b, text...)) // who watched may be gone
}

// Main is process 1 of the namespaces: it prepares them, starts the target, passes signals on and
// reaps until the target has ended. All that still runs ends with it.
func Main() int {
	runtime.LockOSThread() // Landlock and capabilities are the thread's that starts the target
	signals := catch()
	var p Program
	err := gob.NewDecoder(os.NewFile(programFD, "program")).Decode(&p)
	if err == nil {
		err = prepare(p)
	}
	if err != nil {
		tell(eventFailed, 0, err.Error())
		return 1
	}
	pid, err := begin(p)
	if err != nil {
		errno := syscall.EINVAL
		errors.As(err, &errno)
		tell(eventRefused, uint32(errno), "")
		return 1
	}
	tell(eventRunning, 0, "")
	detach()
	go pass(signals, pid)
	reap(pid)
	signal.Stop(signals)
	return 0
}

// prepare hides, then gives rights up, then filters: each step takes what the one before needs.
func prepare(p Program) error {
	for fd := programFD; fd < filesFD+p.Files; fd++ {
		unix.CloseOnExec(fd)
	}
	if p.Bare {
		return nil
	}
	h, err := readHost(p.Spec)
	if err != nil {
		return &Error{"look at the host", err}
	}
	if err := apply(p.Actions(h)); err != nil {
		return err
	}
	// By its name: the folder that was entered before may be one that is hidden now.
	if err := os.Chdir(p.Dir); err != nil {
		return fmt.Errorf("the working directory %s is not there in a strict box", p.Dir)
	}
	return restrict()
}

func restrict() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return &Error{"no_new_privs", err}
	}
	if err := scopeAbstract(); err != nil {
		return &Error{"scope", err}
	}
	if os.Geteuid() != 0 {
		if err := dropRights(); err != nil {
			return &Error{"give rights up", err}
		}
	}
	if err := filterCalls(); err != nil {
		return &Error{"filter system calls", err}
	}
	return nil
}

// dropRights takes the rights in the user namespace from the thread that starts the target. The other
// threads of this process keep theirs, which system calls change one thread at a time: so the target,
// the same account, must not be able to trace it or open its memory.
func dropRights() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return os.NewSyscallError("capset", err)
	}
	return os.NewSyscallError("dumpable", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}

// begin starts the target. A socket that it was given is told with the number of the process, which
// only the process itself knows before it runs: it is executed by way of this program then.
func begin(p Program) (pid int, err error) {
	files := []uintptr{0, 1, 2}
	for i := range p.Files {
		files = append(files, uintptr(filesFD+i))
	}
	path, args := p.Path, p.Args
	if p.Files > 0 {
		path, args = "/proc/self/exe", append([]string{os.Args[0], ListenCommand, strconv.Itoa(p.Files), p.Path}, p.Args...)
	}
	return syscall.ForkExec(path, args, &syscall.ProcAttr{Env: p.Env, Files: files,
		Sys: &syscall.SysProcAttr{Setpgid: true, Foreground: p.Terminal, Ctty: 0}})
}

// pass sends a signal on. What a terminal sends goes to the target's group, as a terminal would.
func pass(signals chan os.Signal, pid int) {
	for s := range signals {
		to := pid
		switch s {
		case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGTSTP, syscall.SIGCONT:
			to = -pid
		}
		_ = syscall.Kill(to, s.(syscall.Signal))
	}
}

// reap waits for every process of the namespace until the target has ended.
func reap(target int) {
	for {
		var s syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &s, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR || err == nil && pid != target:
		case err != nil:
			return
		case s.Stopped():
			tell(eventStopped, uint32(s.StopSignal()), "")
		default:
			tell(eventEnded, uint32(s), "")
			return
		}
	}
}
