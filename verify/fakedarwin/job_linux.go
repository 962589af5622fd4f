package fakedarwin

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"howett.net/plist"
)

// launchdPlist is what the model's launchd understands; keys of a wrong type make it fail to load.
type launchdPlist struct {
	Label                              string
	ProgramArguments                   []string
	EnvironmentVariables               map[string]string
	UserName                           string
	RunAtLoad                          bool
	KeepAlive                          any
	LaunchOnlyOnce                     bool
	ThrottleInterval                   int
	StandardOutPath, StandardErrorPath string
	Sockets                            map[string][]launchdSocket
}

type launchdSocket struct {
	SockType, SockProtocol, SockFamily, SockNodeName, SockServiceName string
}

// job is one loaded job; its fields belong to launchd's lock.
type job struct {
	l       *launchd
	plist   launchdPlist
	path    string
	names   []string // of sockets
	sockets []*os.File
	pid     int
	state   string
	runs    int
	exit    string
	signal  string
	leaving bool
	again   bool
	started time.Time
	turn    int // of startAfter: only the last one counts
}

func (l *launchd) read(path string) (*job, error) {
	b, err := os.ReadFile(filepath.Join(l.mac.Root, path))
	if err != nil {
		return nil, err
	}
	j := &job{l: l, path: path, state: "not running", exit: "(never exited)"}
	if _, err := plist.Unmarshal(b, &j.plist); err != nil {
		return nil, err
	}
	if j.plist.Label == "" || len(j.plist.ProgramArguments) == 0 {
		return nil, fmt.Errorf("no label or no program")
	}
	return j, nil
}

// openSockets binds what the plist lists. Without SockNodeName it is every interface, without SockType a
// stream, as in the manual; a port that is taken is one socket less, and nobody is told.
func (j *job) openSockets() {
	for name, list := range j.plist.Sockets {
		for _, s := range list {
			at := net.JoinHostPort(s.SockNodeName, s.SockServiceName)
			var f *os.File
			if s.SockType == "dgram" {
				if c, err := net.ListenPacket("udp4", at); err == nil {
					f, _ = c.(*net.UDPConn).File()
					c.Close()
				}
			} else if c, err := net.Listen("tcp4", at); err == nil {
				f, _ = c.(*net.TCPListener).File()
				c.Close()
			}
			if f != nil {
				j.names, j.sockets = append(j.names, name), append(j.sockets, f)
			}
		}
	}
}

func (j *job) closeSockets() {
	for _, s := range j.sockets {
		s.Close()
	}
	j.sockets, j.names = nil, nil
}

// startAfter starts the process later: first there is xpcproxy, then the program. The lock is held.
func (j *job) startAfter(d time.Duration) {
	j.state = "xpcproxy"
	j.turn++
	turn := j.turn
	time.AfterFunc(d+j.l.mac.seconds(0.3), func() {
		j.l.mu.Lock()
		defer j.l.mu.Unlock()
		if j.l.over || j.leaving || j.l.jobs[j.plist.Label] != j || j.pid != 0 || j.turn != turn {
			return
		}
		if err := j.start(); err != nil {
			j.exit, j.state = "78: EX_CONFIG", "spawn scheduled"
			j.startAfter(j.l.mac.seconds(10))
		}
	})
}

func (j *job) start() error {
	cmd := exec.Command(j.plist.ProgramArguments[0], j.plist.ProgramArguments[1:]...)
	cmd.Args[0], cmd.Path = j.plist.ProgramArguments[0], j.plist.ProgramArguments[0]
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: j.l.mac.Root, Setpgid: true}
	uid := 0
	if j.plist.UserName != "" {
		u, err := user.Lookup(j.plist.UserName)
		if err != nil {
			return err
		}
		uid, _ = strconv.Atoi(u.Uid)
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	out, err := j.openLog(uid)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "XPC_SERVICE_NAME=" + j.plist.Label}
	for k, v := range j.plist.EnvironmentVariables {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	var words []string
	for i, name := range j.names {
		words = append(words, fmt.Sprintf("%s=%d", name, 3+i))
	}
	cmd.Env, cmd.ExtraFiles = append(cmd.Env, "FAKE_LAUNCHD_SOCKETS="+strings.Join(words, " ")), j.sockets
	if err := cmd.Start(); err != nil {
		return err
	}
	j.pid, j.state, j.started = cmd.Process.Pid, "running", time.Now()
	j.runs++
	go j.reap(cmd)
	return nil
}

// openLog opens it with the rights of the job's user: a log that is not the user's is an error.
func (j *job) openLog(uid int) (*os.File, error) {
	if j.plist.StandardErrorPath == "" {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	path := filepath.Join(j.l.mac.Root, j.plist.StandardErrorPath)
	if fi, err := os.Stat(path); uid != 0 && (err != nil || int(fi.Sys().(*syscall.Stat_t).Uid) != uid) {
		return nil, fmt.Errorf("%s: permission denied", j.plist.StandardErrorPath)
	}
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
}

// reap waits for the end and does what KeepAlive says.
func (j *job) reap(cmd *exec.Cmd) {
	err := cmd.Wait()
	j.l.mu.Lock()
	defer j.l.mu.Unlock()
	j.pid, j.state, j.signal = 0, "not running", ""
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		j.signal = fmt.Sprintf("%s: %d", status.Signal(), status.Signal())
	} else {
		j.exit = strconv.Itoa(status.ExitStatus())
	}
	if j.leaving || j.l.over {
		return
	}
	if j.plist.LaunchOnlyOnce {
		delete(j.l.jobs, j.plist.Label)
		return
	}
	keep, _ := j.plist.KeepAlive.(bool)
	if m, is := j.plist.KeepAlive.(map[string]any); is {
		onSuccess, _ := m["SuccessfulExit"].(bool)
		keep = onSuccess == (err == nil)
	}
	if !keep && !j.again {
		return
	}
	wait := j.l.mac.seconds(float64(max(j.plist.ThrottleInterval, 10))) - time.Since(j.started)
	if j.again {
		wait = 0
	}
	j.again = false
	j.startAfter(max(wait, 0))
	if wait > 0 {
		j.state = "spawn scheduled"
	}
}

func (j *job) kill(sig syscall.Signal) {
	j.l.mu.Lock()
	pid := j.pid
	j.l.mu.Unlock()
	if pid != 0 {
		syscall.Kill(-pid, sig)
	}
}

// waitGone is the exit timeout: then SIGKILL.
func (j *job) waitGone(limit time.Duration) {
	for end := time.Now().Add(limit); ; time.Sleep(2 * time.Millisecond) {
		j.l.mu.Lock()
		gone := j.pid == 0
		j.l.mu.Unlock()
		if gone {
			return
		}
		if time.Now().After(end) {
			j.kill(syscall.SIGKILL)
		}
	}
}

// describe is "launchctl print". Newer releases indent otherwise and tell of endpoints with states.
func (j *job) describe(release int) string {
	tab := "\t"
	if release >= 26 {
		tab = "    "
	}
	out := fmt.Sprintf("system/%s = {\n%sactive count = %d\n%spath = %s\n%stype = LaunchDaemon\n%sstate = %s\n\n%sprogram = %s\n",
		j.plist.Label, tab, j.pid&1, tab, j.path, tab, tab, j.state, tab, j.plist.ProgramArguments[0])
	out += fmt.Sprintf("%sendpoints = {\n%s%sstate = running\n%s}\n%sruns = %d\n", tab, tab, tab, tab, tab, j.runs)
	if j.pid != 0 {
		out += fmt.Sprintf("%spid = %d\n", tab, j.pid)
	}
	if j.signal != "" {
		out += fmt.Sprintf("%slast terminating signal = %s\n", tab, j.signal)
	}
	return out + fmt.Sprintf("%slast exit code = %s\n}\n", tab, j.exit)
}
