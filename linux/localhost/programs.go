package localhost

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Config is what the programs are made from. Every field is part of their identity.
type Config struct {
	// NetnsCookie names the network namespace that the programs act in (SO_NETNS_COOKIE).
	NetnsCookie uint64
	// Level is the depth of a leaf below the root of the hierarchy, as the kernel counts: from its own root,
	// also for who is in a cgroup namespace.
	Level int
	// Multipath: the kernel tells the MPTCP socket above a TCP one (bpf_skc_to_mptcp_sock, 5.19). Without it
	// servers that use MPTCP are shown their box's address. Fit sets it.
	Multipath bool
	// Marks are those of the table. The zero value is for DefaultMarks.
	Marks Marks
}

// Check says what is wrong with a config.
func (c Config) Check() error {
	switch {
	case c.NetnsCookie == 0:
		return errors.New("localhost: no network namespace cookie")
	case c.Level < 1 || c.Level > 255:
		return fmt.Errorf("localhost: level %d of a leaf", c.Level)
	}
	return c.Marks.Check()
}

// Place is the cgroup that a program is attached to.
type Place int

// Places: the folder of all leaves, and the root of the hierarchy as far as it is visible.
const (
	OnBoxes Place = iota
	OnRoot
)

// Program is one of the set, ready to load once its maps are.
type Program struct {
	// Role is the part of the name that never changes: "minhost_" and a letter.
	Role string
	// Name is Role and six hex digits of the sum of the instructions: what the kernel shows for it.
	Name         string
	Place        Place
	Type         ebpf.ProgramType
	Attach       ebpf.AttachType
	Instructions asm.Instructions
}

// Programs returns the set in the order in which it is attached: the guard first, and bind before the ones
// that find what it bound.
func Programs(c Config) ([]Program, error) {
	if c.Marks == (Marks{}) {
		c.Marks = DefaultMarks()
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	out := []Program{
		{Role: "minhost_A", Place: OnRoot, Attach: ebpf.AttachCGroupInet4Bind, Instructions: guard4(c)},
		{Role: "minhost_B", Place: OnRoot, Attach: ebpf.AttachCGroupInet6Bind, Instructions: guard6(c)},
		{Role: "minhost_P", Place: OnRoot, Attach: ebpf.AttachCGroupInetIngress, Instructions: receive(c)},
		{Role: "minhost_C", Attach: ebpf.AttachCGroupInet4Bind, Instructions: bind4(c)},
		{Role: "minhost_D", Attach: ebpf.AttachCGroupInet6Bind, Instructions: bind6(c)},
		{Role: "minhost_O", Attach: ebpf.AttachCGroupInet6PostBind, Instructions: postBind6(c)},
		{Role: "minhost_E", Attach: ebpf.AttachCgroupInet4GetSockname, Instructions: getsockname4(c)},
		{Role: "minhost_F", Attach: ebpf.AttachCgroupInet6GetSockname, Instructions: getsockname6(c)},
		{Role: "minhost_G", Attach: ebpf.AttachCgroupInet4GetPeername, Instructions: getpeername4(c)},
		{Role: "minhost_H", Attach: ebpf.AttachCgroupInet6GetPeername, Instructions: getpeername6(c)},
		{Role: "minhost_I", Attach: ebpf.AttachCGroupUDP4Recvmsg, Instructions: recvmsg4(c)},
		{Role: "minhost_J", Attach: ebpf.AttachCGroupUDP6Recvmsg, Instructions: recvmsg6(c)},
		{Role: "minhost_K", Attach: ebpf.AttachCGroupUDP4Sendmsg, Instructions: sendmsg4(c)},
		{Role: "minhost_L", Attach: ebpf.AttachCGroupUDP6Sendmsg, Instructions: sendmsg6(c)},
		{Role: "minhost_M", Attach: ebpf.AttachCGroupInet4Connect, Instructions: connect4(c)},
		{Role: "minhost_N", Attach: ebpf.AttachCGroupInet6Connect, Instructions: connect6(c)},
	}
	for i := range out {
		name, err := nameOf(out[i])
		if err != nil {
			return nil, fmt.Errorf("localhost: assemble %s: %w", out[i].Role, err)
		}
		out[i].Name, out[i].Type = name, kind(out[i].Attach)
	}
	return out, nil
}

// nameOf adds the sum. The text is summed up, which has the names of the maps: where they are loaded
// differs each time. Marshalling resolves the jumps, which comparing with a loaded program needs.
func nameOf(p Program) (string, error) {
	sum := sha256.Sum256([]byte(fmt.Sprint(p.Instructions)))
	if err := p.Instructions.Marshal(io.Discard, binary.LittleEndian); err != nil {
		return "", err
	}
	return p.Role + hex.EncodeToString(sum[:3]), nil
}
