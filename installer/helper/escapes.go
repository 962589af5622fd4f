package helper

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// maxMembers is how many processes of one box are followed: each costs two descriptors.
const maxMembers = 256

// members are processes of a box, held by pidfd: those that were attached or joined, and those that a
// look found in the leaf. So one that somebody moved out is known to be the box's.
type members struct {
	mu     sync.Mutex
	held   map[int]Process
	closed bool
}

func (m *members) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.held {
		p.Close()
	}
	m.held, m.closed = nil, true
}

// follow holds a process that is in the leaf.
func (h *Helper) follow(b *box, pid int) {
	b.members.mu.Lock()
	defer b.members.mu.Unlock()
	if b.members.closed || b.members.held[pid] != nil || len(b.members.held) >= maxMembers {
		return
	}
	p, err := h.cfg.Processes.Open(pid)
	if err != nil {
		return // it has ended
	}
	// Behind the handle, which a reused pid cannot fool.
	if leaf, err := h.cfg.Tree.LeafOf(pid); err != nil || leaf != b.ID || !p.Alive() {
		p.Close()
		return
	}
	if b.members.held == nil {
		b.members.held = map[int]Process{}
	}
	b.members.held[pid] = p
}

// WatchLeaves looks again and again for processes of boxes outside their leaves, until the context ends.
// The service manager moves a process of the same user out of any cgroup on request (systemd 252 and
// 257): what left is killed and told. A report, not a boundary: it has run outside until then.
func (h *Helper) WatchLeaves(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(h.cfg.LookAfter):
		}
		h.mu.Lock()
		var boxes []*box
		for _, b := range h.boxes {
			if b.State == lease.Attached {
				boxes = append(boxes, b)
			}
		}
		h.mu.Unlock()
		for _, b := range boxes {
			h.look(b)
		}
	}
}

// look finds processes of one box that are outside, by two signs: they were in the leaf before, or
// their parent is in it (only a member makes a child of a member).
func (h *Helper) look(b *box) {
	pids, err := b.leaf.Pids()
	if err != nil {
		return // the leaf is going away
	}
	inside := map[int]bool{}
	for _, pid := range pids {
		inside[pid] = true
		h.follow(b, pid)
	}
	b.members.mu.Lock()
	defer b.members.mu.Unlock()
	for pid, p := range b.members.held {
		switch {
		case !p.Alive():
		case !inside[pid] && h.escaped(b, p):
		default:
			h.lookBelow(b, p, inside)
			continue
		}
		p.Close()
		delete(b.members.held, pid)
	}
}

// lookBelow finds children of a member that were moved out before a look saw them inside.
func (h *Helper) lookBelow(b *box, parent Process, inside map[int]bool) {
	children, err := parent.Children()
	if err != nil {
		return
	}
	for _, pid := range children {
		if inside[pid] || b.members.held[pid] != nil {
			continue
		}
		p, err := h.cfg.Processes.Open(pid)
		if err != nil {
			continue
		}
		// Still its child, now that the pid cannot be another's; it may have been born since the list.
		if again, err := parent.Children(); err == nil && slices.Contains(again, pid) {
			h.escaped(b, p)
		}
		p.Close()
	}
}

// escaped kills a process that is alive outside the leaf of its box, and tells.
func (h *Helper) escaped(b *box, p Process) bool {
	leaf, err := h.cfg.Tree.LeafOf(p.PID())
	if err != nil || leaf == b.ID || !p.Alive() {
		return false
	}
	group, _ := h.cfg.Tree.GroupOf(p.PID()) // for the message
	err = p.Kill()
	text := fmt.Sprintf("process %d left its box for %s and was killed", p.PID(), api.Text(group))
	if err != nil {
		text = fmt.Sprintf("process %d left its box for %s and cannot be killed: %v", p.PID(), api.Text(group), err)
	}
	h.log.Warn("escaped", "lease", b.ID, "box", b.Name, "pid", p.PID(), "group", api.Text(group), "cause", err)
	h.tell(b, api.EventKindEscaped, text)
	return true
}
