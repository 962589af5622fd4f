package clienttest

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/gominimal/minhost/installer/api"
)

// Secret is the secret of every lease.
const Secret = "the-secret"

func (h *Helper) do(ctx context.Context, method string, in any, fds []*os.File) (any, error) {
	h.mu.Lock()
	h.calls = append(h.calls, Call{method, in, len(fds)})
	h.mu.Unlock()
	if h.Before != nil {
		h.Before(ctx, method, in)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.Fail[method]; err != nil {
		return nil, err
	}
	conn, _ := ctx.Value(connKey{}).(*net.UnixConn)
	switch in := in.(type) {
	case *api.PlanIn:
		return h.plan(conn, in), nil
	case *api.AttachIn:
		return api.AttachOut{}, h.attach(conn, in, fds)
	case *api.AdoptIn:
		b, err := h.find(in.Lease, in.Secret)
		if err == nil {
			b.owner = conn
		}
		return api.AdoptOut{}, err
	case *api.AbandonIn:
		b, err := h.find(in.Lease, Secret)
		if err == nil {
			h.end(b)
		}
		return api.AbandonOut{}, err
	case *api.TeardownIn:
		b, err := h.find(in.Lease, in.Secret)
		if err != nil {
			return nil, err
		}
		h.end(b)
		return api.TeardownOut{Refusals: h.Refusals}, nil
	case *api.WatchIn:
		return api.WatchOut{Event: api.Event{Kind: api.EventKindGone, Lease: in.Lease}}, nil
	case *api.JoinIn:
		_, err := h.find(in.Lease, in.Secret)
		return api.JoinOut{Net: h.Net}, err
	}
	return api.NewOut(method), nil
}

func (h *Helper) plan(conn *net.UnixConn, in *api.PlanIn) api.PlanOut {
	h.next++
	h.counts.Plans++
	b := &box{id: fmt.Sprintf("lease%d", h.next), plan: *in, owner: conn}
	h.boxes[b.id] = b
	out := api.PlanOut{
		Lease: b.id, Secret: Secret, Name: in.Name, HostAddress: "127.0.64.254", Leaf: "/none/" + b.id,
		Net: h.Net, Enforcement: api.EnforcementPerBox, Boundary: cmp.Or(in.Boundary, api.BoundaryCooperative),
	}
	if in.Name != "" {
		out.Address = fmt.Sprintf("127.0.64.%d", h.next)
	}
	if h.Enforcement != "" {
		out.Enforcement, out.EnforcementCause = h.Enforcement, "the fake says so"
	}
	return out
}

func (h *Helper) attach(conn *net.UnixConn, in *api.AttachIn, fds []*os.File) error {
	b, err := h.find(in.Lease, Secret)
	if err != nil {
		return err
	}
	if b.attached || b.owner != conn {
		return &api.WrongState{Lease: b.id, State: "attached", Message: "not planned on this connection"}
	}
	pid := in.PID
	if len(fds) == 1 {
		pid = pidOf(fds[0])
	}
	if pid <= 0 || syscall.Kill(pid, 0) != nil {
		return &api.NoSuchProcess{PID: pid, Message: fmt.Sprintf("there is no process %d", pid)}
	}
	b.attached, b.pids = true, append(b.pids, pid)
	h.counts.Attaches++
	return nil
}

// end releases a lease in whatever state it is.
func (h *Helper) end(b *box) {
	if b.attached {
		h.counts.Teardowns++
	} else {
		h.counts.Abandons++
	}
	for _, pid := range b.pids {
		// A runner's child leads a process group; the real helper kills the leaf.
		if syscall.Kill(-pid, syscall.SIGKILL) != nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	delete(h.boxes, b.id)
}

func (h *Helper) find(lease, secret string) (*box, error) {
	b := h.boxes[lease]
	if b == nil {
		return nil, &api.NoSuchLease{Lease: lease, Message: "there is no lease " + api.Text(lease), Next: "minhost ls"}
	}
	if secret != Secret {
		return nil, &api.WrongSecret{Lease: lease, Message: "the secret is not the lease's"}
	}
	return b, nil
}

// pidOf reads the process of a pidfd; 0 when it is none.
func pidOf(f *os.File) int {
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(int(f.Fd())))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "Pid:"); ok {
			pid, _ := strconv.Atoi(strings.TrimSpace(value))
			return pid
		}
	}
	return 0
}
