package errand

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Verb is the hidden subcommand that calls Child.
const Verb = "errand"

// Bounds of an errand: of the whole, of the answer in octets, of its descriptors.
const (
	limit     = 10 * time.Second
	maxAnswer = 8 << 10
	maxFiles  = 1
	maxWords  = 200
	grace     = time.Second // for what a child has said before its end
)

// Spec says what is to be done, where, and as whom.
type Spec struct {
	// Name of the errand in Child's table, and its parameters, which become JSON.
	Name string
	In   any
	// Leaf is the open directory of the cgroup that the child is born in; nil for that of this process.
	Leaf *os.File
	// User is the uid and gid that the child runs as, without further groups; nil for those of this process.
	User *uint32
	// Capabilities are what the child keeps although it runs as User.
	Capabilities []uintptr
	// Program is in place of this one: the same one elsewhere, which AppArmor knows by its path.
	Program string
	// Apart gives the child user and mount namespaces of its own, with the right to mount in them.
	Apart bool
	// Files are given to the child.
	Files []*os.File
}

// Failed is what an errand answered instead of a result.
type Failed struct {
	Message string
	// Errno is 0 when it was no system call that failed.
	Errno syscall.Errno
}

func (e *Failed) Error() string { return e.Message }

// Unwrap makes errors.Is(err, unix.EADDRINUSE) work across processes.
func (e *Failed) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// answer is what a child sends.
type answer struct {
	Error string        `json:"error,omitempty"`
	Errno syscall.Errno `json:"errno,omitempty"`
}

// Run runs an errand to its end and returns the descriptor that it made, nil when it made none; the
// caller closes it. The error is a *Failed when the child says that the errand failed. Needs kernel 5.7
// (CLONE_INTO_CGROUP) for a leaf.
func Run(ctx context.Context, s Spec) (*os.File, error) {
	f, err := run(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return f, nil
}

func run(ctx context.Context, s Spec) (*os.File, error) {
	in, err := json.Marshal(s.In)
	if err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "errand"), os.NewFile(uintptr(pair[1]), "errand")
	defer ours.Close()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, cmp.Or(s.Program, "/proc/self/exe"), Verb, s.Name, string(in))
	cmd.Env = []string{} // nil would be ours
	cmd.ExtraFiles = append([]*os.File{theirs}, s.Files...)
	cmd.SysProcAttr = s.attributes()
	var said words
	cmd.Stderr, cmd.WaitDelay = &said, grace
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	a, files, rerr := receive(ctx, ours)
	werr := cmd.Wait()
	f, err := settle(a, files, rerr)
	if err != nil && werr != nil && !errors.As(err, new(*Failed)) {
		err = fmt.Errorf("%w: %w: %.200q", err, werr, said.text)
	}
	return f, errors.Join(err, ctx.Err())
}

func (s Spec) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{AmbientCaps: s.Capabilities, Setsid: true}
	if s.Leaf != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(s.Leaf.Fd())
	}
	if s.User != nil {
		a.Credential = &syscall.Credential{Uid: *s.User, Gid: *s.User}
	}
	if s.Apart {
		uid, gid := os.Geteuid(), os.Getegid()
		a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		a.AmbientCaps = append(a.AmbientCaps, unix.CAP_SYS_ADMIN)
	}
	return a
}

// words are what a child says that cannot answer, as much of it as is told. It is our own program, but runs as a user
// whose other processes may take its descriptors (pidfd_getfd), write as much as they like and keep them open.
type words struct{ text []byte }

func (w *words) Write(p []byte) (int, error) {
	w.text = append(w.text, p[:min(len(p), maxWords-len(w.text))]...)
	return len(p), nil
}

// receive reads the one message of a child, as much of it as fits. It ends with the child, and where somebody else has
// the child's end of the pair too, with ctx.
func receive(ctx context.Context, f *os.File) (answer, []*os.File, error) {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = unix.Shutdown(int(f.Fd()), unix.SHUT_RDWR)
	})
	defer func() {
		if !stop() {
			<-ended // before f is closed, and its number another's
		}
	}()
	buf, oob := make([]byte, maxAnswer), make([]byte, unix.CmsgSpace(4*maxFiles))
	for {
		n, oobn, flags, _, err := unix.Recvmsg(int(f.Fd()), buf, oob, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return answer{}, nil, os.NewSyscallError("recvmsg", err)
		}
		files := descriptors(oob[:oobn])
		var a answer
		switch {
		case n == 0:
			err = errors.New("the child ended without an answer")
		case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
			err = errors.New("the answer of the child is too long")
		default:
			err = json.Unmarshal(buf[:n], &a)
		}
		return a, files, err
	}
}

func descriptors(oob []byte) []*os.File {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	var out []*os.File
	for _, m := range messages {
		fds, _ := unix.ParseUnixRights(&m) // of another kind: none
		for _, fd := range fds {
			out = append(out, os.NewFile(uintptr(fd), "errand"))
		}
	}
	return out
}

// settle keeps the descriptor of a success and closes that of a failure.
func settle(a answer, files []*os.File, err error) (*os.File, error) {
	if err == nil && a.Error != "" {
		err = &Failed{a.Error, a.Errno}
	}
	if err == nil && len(files) == 1 {
		return files[0], nil
	}
	for _, f := range files {
		f.Close()
	}
	return nil, err
}
