package selftest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/linux/cgroup"
)

// LeafPrefix starts the names of throw-away leaves; who looks for leaves without a lease must pass over
// them.
const LeafPrefix = "selftest-"

// Config says how to start the child.
type Config struct {
	// Tree must exist. The caller must be in none of its leaves.
	Tree *cgroup.Tree
	// Program and Args start Child; address and timeout are added. Empty: this program with
	// "selftest-child".
	Program string
	Args    []string
	// Env of the child; nil is none at all.
	Env []string
	// Timeout of the connection from the leaf, 0 is 500 ms: as long as this passes when the belt alone
	// holds. Those from outside must succeed, and have four times as long.
	Timeout time.Duration
}

func (c Config) withDefaults() Config {
	if c.Program == "" {
		c.Program, c.Args = "/proc/self/exe", []string{"selftest-child"}
	}
	if c.Timeout == 0 {
		c.Timeout = 500 * time.Millisecond
	}
	if c.Env == nil {
		c.Env = []string{}
	}
	return c
}

// Run makes the test. An error means that it could not be made; a result that is not OK means that it
// was made and failed. The leaf is gone afterwards in every case, or the error says that it is not.
func Run(ctx context.Context, c Config) (Result, error) {
	c = c.withDefaults()
	var r Result
	ctx, cancel := context.WithTimeout(ctx, 9*c.Timeout+5*time.Second)
	defer cancel()
	if name, err := c.Tree.LeafOf(os.Getpid()); err != nil || name != "" {
		return r, errors.Join(err, fmt.Errorf("self-test: this process is in the leaf %q; run it outside boxes", name))
	}
	address, stop, err := listen(ctx)
	if err != nil {
		return r, fmt.Errorf("self-test: %w", err)
	}
	defer stop()
	if r.Control, err = c.child(ctx, address, nil); err != nil {
		return r, fmt.Errorf("self-test: control: %w", err)
	}
	if r.Control.Outcome != Connected {
		return r, nil
	}
	if r.Leaf, err = c.fromLeaf(ctx, address); err != nil {
		return r, fmt.Errorf("self-test: leaf: %w", err)
	}
	r.After = attempt(address, 4*c.Timeout)
	return r, nil
}

// listen accepts on 127.0.0.1 until stop.
func listen(ctx context.Context) (address string, stop func() error, err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	return l.Addr().String(), l.Close, nil
}

// fromLeaf makes the attempt from a leaf of its own.
func (c Config) fromLeaf(ctx context.Context, address string) (a Attempt, err error) {
	sweep(c.Tree)
	name := fmt.Sprintf("%s%d-%d", LeafPrefix, os.Getpid(), time.Now().UnixNano())
	leaf, err := c.Tree.Create(name)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, discard(leaf)) }()
	return c.child(ctx, address, leaf)
}

// discard ends what is in a leaf and removes it, also when the caller's time is up.
func discard(leaf *cgroup.Leaf) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := errors.Join(leaf.Kill(), leaf.WaitEmpty(ctx), leaf.Remove())
	leaf.Close()
	if err != nil {
		return fmt.Errorf("throw-away leaf %s is left over: %w", leaf.Name(), err)
	}
	return nil
}

// sweep removes the leaves of self-tests whose process was killed. One that cannot be removed is tried
// again by the next.
func sweep(t *cgroup.Tree) {
	names, err := t.List()
	if err != nil {
		return
	}
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, LeafPrefix)
		text, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(text)
		if !ok || err != nil || pid <= 0 || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			continue
		}
		if leaf, err := t.Open(name); err == nil {
			discard(leaf)
		}
	}
}

// child runs Child, born in the leaf (CLONE_INTO_CGROUP, kernel 5.7) when there is one: it never was
// anywhere else, so no socket of it can be.
func (c Config) child(ctx context.Context, address string, leaf *cgroup.Leaf) (Attempt, error) {
	var out, errOut bytes.Buffer
	limit := c.Timeout
	if leaf == nil {
		limit *= 4
	}
	cmd := exec.CommandContext(ctx, c.Program, append(append([]string{}, c.Args...), address, limit.String())...)
	cmd.Env, cmd.Dir = c.Env, "/"
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.WaitDelay = time.Second
	if leaf != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: leaf.FD()}
	}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return Attempt{}, fmt.Errorf("child %s: %w: %s", c.Program, err, bytes.TrimSpace(errOut.Bytes()))
	}
	var a Attempt
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		return Attempt{}, fmt.Errorf("child %s: answer %q: %w", c.Program, out.Bytes(), err)
	}
	return a, nil
}
