package localhost

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// maxDepth bounds the search for the visible root.
const maxDepth = 32

// rootLevel is how deep the root of the mount is in the hierarchy of the kernel: 0 but in a cgroup
// namespace. The kernel does not tell; a program that runs once in this process does, since this process is
// below that root.
func rootLevel(rootID uint64) (int, error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: maxDepth})
	if err != nil {
		return 0, fmt.Errorf("localhost: map: %w", err)
	}
	defer m.Close()
	var is asm.Instructions
	for level := range int32(maxDepth) {
		is = append(is,
			asm.Mov.Imm(asm.R1, level),
			asm.FnGetCurrentAncestorCgroupId.Call(),
			asm.StoreMem(asm.RFP, -8, asm.R0, asm.DWord),
			asm.StoreImm(asm.RFP, -16, int64(level), asm.Word),
			asm.LoadMapPtr(asm.R1, m.FD()),
			asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -16),
			asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, -8),
			asm.Mov.Imm(asm.R4, 0),
			asm.FnMapUpdateElem.Call())
	}
	is = append(is, asm.Mov.Imm(asm.R0, 0), asm.Return())
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "minhost_level", Type: ebpf.Syscall, Flags: unix.BPF_F_SLEEPABLE, License: "GPL", Instructions: is})
	if err != nil {
		return 0, fmt.Errorf("localhost: ask for the depth: %w", err)
	}
	defer p.Close()
	if _, err := p.Run(&ebpf.RunOptions{}); err != nil {
		return 0, fmt.Errorf("localhost: ask for the depth: %w", err)
	}
	for level := range uint32(maxDepth) {
		var id uint64
		if err := m.Lookup(level, &id); err != nil {
			return 0, fmt.Errorf("localhost: depth: %w", err)
		}
		if id == rootID {
			return int(level), nil
		}
	}
	return 0, errors.New("localhost: this process is not below the root of the cgroup mount")
}
