package helper

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"syscall"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// Runners are the places of runners outside boxes, node/<uid>, whose packets are counted (linux/cgroup, linux/nft).
type Runners interface {
	// Prepare makes the place of an account and has what is sent and received there counted. It returns the path,
	// for display.
	Prepare(ctx context.Context, uid uint32) (path string, err error)
	// Move puts a process with all its threads there; syscall.ESRCH when there is no such process.
	Move(uid uint32, pid int) error
	// Accounts that have a place, by its cgroup id.
	Accounts() (map[uint64]uint32, error)
}

// count moves who calls. The number is pinned while it is written, as in move; a peer that is alive behind the pin
// has it still.
func (h *Helper) count(ctx context.Context, c request, _ api.CountIn) (api.CountOut, error) {
	pid, uid := c.peer.PID, c.peer.UID
	if h.cfg.Runners == nil {
		return api.CountOut{}, &api.NotSupported{Message: "runners are not counted on this host", Next: "minhost status"}
	}
	p, err := h.cfg.Processes.Open(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return api.CountOut{}, noSuchProcess(pid)
	}
	if err != nil {
		return api.CountOut{}, internal("open process", err)
	}
	defer p.Close()
	path, err := h.cfg.Runners.Prepare(ctx, uid)
	if err != nil {
		return api.CountOut{}, internal("count runners", err)
	}
	defer h.pin(p)()
	if err := c.peer.Alive(); err != nil {
		return api.CountOut{}, noSuchProcess(pid)
	}
	if leaf, err := h.cfg.Tree.LeafOf(pid); err != nil || leaf != "" { // it was moved since it was admitted
		return api.CountOut{}, refuse(c.method, "the caller is in a box", "call from outside the box")
	}
	if err := h.cfg.Runners.Move(uid, pid); errors.Is(err, syscall.ESRCH) {
		return api.CountOut{}, noSuchProcess(pid)
	} else if err != nil {
		return api.CountOut{}, internal("move process", err)
	}
	h.log.Info("counted", "uid", uid, "pid", pid, "group", path)
	return api.CountOut{Group: path}, nil
}

// runnersTo tells a caller about the own runners, and root about all. Of one account they are one line.
func (h *Helper) runnersTo(p *lease.Planes, c request) []api.Traffic {
	if h.cfg.Runners == nil || p == nil {
		return nil
	}
	accounts, err := h.cfg.Runners.Accounts()
	if err != nil {
		h.log.Warn("count runners", "cause", err)
		return nil
	}
	var out []api.Traffic
	for group, uid := range accounts {
		if uid == c.peer.UID || c.root() {
			t := traffic("runner", p.Runners[group])
			t.UID = int(uid)
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b api.Traffic) int { return cmp.Compare(a.UID, b.UID) })
	return out
}
