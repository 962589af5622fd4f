package fakedarwin

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Mac is one model, and the knobs of its rules. Knobs are set while nothing runs.
type Mac struct {
	Root string
	// Second is how long a second of launchd takes: throttling and busy labels would make tests slow.
	Second time.Duration
	// Release chooses the words of launchctl: 13, 15 or 26.
	Release int
	// BusyFor is how long a label stays busy after bootout, in seconds of launchd.
	BusyFor float64
	// Slow is how long launchd takes to start a job, in seconds of launchd.
	Slow float64
	// FailAdds makes the next additions of an alias fail, by address.
	FailAdds map[string]int
	// SlowAdds is how long each addition takes.
	SlowAdds time.Duration
	// NoPrompt makes sudo refuse to go on without a password.
	NoPrompt bool
	// Profile stands for an encrypted-DNS profile: no lookup gets to a resolver file.
	Profile bool
	// Deaf has the resolver ask and take no answer, as a filter in between does.
	Deaf bool
	// Offline takes the network away: who asks with AI_ADDRCONFIG gets no A.
	Offline bool
	// AtBoot is called before launchd's jobs start.
	AtBoot func()

	mu       sync.Mutex
	lo0      []Alias
	boot     bootState
	launchd  *launchd
	resolver *resolver
	prompts  int
	calls    []string // of programs, in order: "name arg ..."
	listener net.Listener
	folder   *watch
}

type bootState struct {
	id string
	at time.Time
}

// Start brings the model up on a root that Build made, and boots it.
func (m *Mac) Start() error {
	l, err := net.Listen("unix", filepath.Join(m.Root, Socket))
	if err != nil {
		return err
	}
	if err := os.Chmod(filepath.Join(m.Root, Socket), 0o666); err != nil {
		return err
	}
	m.listener, m.resolver = l, newResolver(m)
	if m.folder, err = newWatch(m.Root, "private/etc", "resolver"); err != nil {
		return err
	}
	go m.accept()
	return m.bootUp()
}

// Stop ends everything that runs in the model.
func (m *Mac) Stop() {
	m.launchd.shutdown()
	m.killAll()
	m.listener.Close()
	m.folder.close()
	m.clearLo0()
}

// Reboot ends everything, clears what a reboot clears, lets the clock jump, and boots again.
func (m *Mac) Reboot(jump time.Duration) error {
	m.launchd.shutdown()
	m.killAll()
	m.clearLo0()
	for _, dir := range []string{"private/var/run", "private/tmp"} {
		names, err := os.ReadDir(filepath.Join(m.Root, dir))
		if err != nil {
			return err
		}
		for _, n := range names {
			os.RemoveAll(filepath.Join(m.Root, dir, n.Name()))
		}
	}
	if err := m.shiftLogs(-jump); err != nil {
		return err
	}
	return m.bootUp()
}

func (m *Mac) bootUp() error {
	var b [16]byte
	rand.Read(b[:])
	m.mu.Lock()
	m.boot = bootState{fmt.Sprintf("%X-%X-%X-%X-%X", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), time.Now()}
	m.launchd = newLaunchd(m)
	m.mu.Unlock()
	m.resolver.flush()
	if err := m.resetLo0(); err != nil {
		return err
	}
	if m.AtBoot != nil {
		m.AtBoot()
	}
	m.launchd.bootAll()
	return nil
}

// shiftLogs is a jump of the clock: the stamps of before the boot are as far off as it went. (kern.boottime
// moves with the clock, so that what runs now sees nothing of it.)
func (m *Mac) shiftLogs(by time.Duration) error {
	logs, err := filepath.Glob(filepath.Join(m.Root, "private/var/log/*.log"))
	for _, path := range logs {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := stamp.ReplaceAllStringFunc(string(b), func(s string) string {
			at, err := time.Parse(time.RFC3339Nano, strings.TrimPrefix(s, "time="))
			if err != nil {
				return s
			}
			return "time=" + at.Add(by).Format("2006-01-02T15:04:05.000Z07:00")
		})
		// In place: owner and mode stay.
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return err
}

var stamp = regexp.MustCompile(`time=\S+`)

// killAll ends every process whose root is the model's.
func (m *Mac) killAll() {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		found := false
		roots, _ := filepath.Glob("/proc/[0-9]*/root")
		for _, r := range roots {
			if to, err := os.Readlink(r); err != nil || to != m.Root {
				continue
			}
			pid, _ := strconv.Atoi(strings.Split(r, "/")[2])
			if pid > 1 && pid != os.Getpid() {
				found = true
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if !found {
			return
		}
	}
}

func (m *Mac) accept() {
	for {
		c, err := m.listener.Accept()
		if err != nil {
			return
		}
		go m.serve(c.(*net.UnixConn))
	}
}

func (m *Mac) serve(c *net.UnixConn) {
	defer c.Close()
	var call Call
	if err := json.NewDecoder(c).Decode(&call); err != nil {
		return
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			call.uid = cred.Uid
		}
	})
	m.mu.Lock()
	m.calls = append(m.calls, strings.Join(append([]string{call.Name}, call.Args...), " "))
	m.mu.Unlock()
	json.NewEncoder(c).Encode(m.answer(call))
}

// Calls lists the programs that were run since the last time, in order.
func (m *Mac) Calls() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls := m.calls
	m.calls = nil
	return calls
}

// Prompts is how often somebody was asked for a password, or would have been.
func (m *Mac) Prompts() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.prompts
}

// seconds of launchd.
func (m *Mac) seconds(s float64) time.Duration { return time.Duration(s * float64(m.Second)) }

func fail(code int, format string, args ...any) Answer {
	return Answer{Code: code, Stderr: fmt.Sprintf(format, args...) + "\n"}
}
