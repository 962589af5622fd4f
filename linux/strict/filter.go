package strict

import "golang.org/x/net/bpf"

// Rules is what a filter of system calls refuses, in the numbers of one architecture.
type Rules struct {
	// Arch is the kernel's number of the architecture (AUDIT_ARCH_*). Calls of another one, 32-bit
	// programs on a 64-bit kernel, are ENOSYS: socketcall(2) hides the family from a filter.
	Arch uint32
	// Foreign is the first number that is another ABI's under the same Arch (x32); 0 for none.
	Foreign uint32
	// Absent calls are ENOSYS, as on a kernel built without them.
	Absent []uint32
	// Ioctl is its number, Requests what it may not do: EPERM.
	Ioctl    uint32
	Requests []uint32
	// Sockets are the calls whose first argument is a family; those not in Families are EAFNOSUPPORT,
	// and with a protocol of Protocols EPROTONOSUPPORT.
	Sockets, Families, Protocols []uint32
	// Errnos of the above.
	ENOSYS, EPERM, EAFNOSUPPORT, EPROTONOSUPPORT uint32
}

// Offsets in struct seccomp_data (linux/seccomp.h); the arguments are 64 bits wide, and the kernel
// reads the lower half of those below, whatever the upper one says: so do we. Little endian.
const (
	offsetNumber   = 0
	offsetArch     = 4
	offsetArgument = 16
)

// Results of a filter (linux/seccomp.h).
const (
	resultErrno = 0x00050000
	resultAllow = 0x7fff0000
)

// Filter assembles the rules. What they do not name is allowed.
//
// The assembler is that of golang.org/x/net. The seccomp packages for Go compare all 64 bits of an
// argument, where a bit in the upper half hides a TIOCSTI, or let calls of a foreign architecture
// pass (elastic/go-seccomp-bpf 1.6), or need cgo.
func (r Rules) Filter() []bpf.Instruction {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: r.Arch, SkipTrue: 1},
		refuse(r.ENOSYS),
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
	}
	if r.Foreign != 0 {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpLessThan, Val: r.Foreign, SkipTrue: 1}, refuse(r.ENOSYS))
	}
	for _, number := range r.Absent {
		p = append(p, onEqual(number, refuse(r.ENOSYS))...)
	}
	p = append(p, onEqual(r.Ioctl, r.ioctl()...)...)
	for _, number := range r.Sockets {
		p = append(p, onEqual(number, r.socket()...)...)
	}
	return append(p, bpf.RetConstant{Val: resultAllow})
}

func (r Rules) ioctl() []bpf.Instruction {
	p := []bpf.Instruction{argument(1)}
	for _, request := range r.Requests {
		p = append(p, onEqual(request, refuse(r.EPERM))...)
	}
	return append(p, bpf.RetConstant{Val: resultAllow})
}

func (r Rules) socket() []bpf.Instruction {
	p := []bpf.Instruction{argument(0)}
	for i, family := range r.Families {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: family, SkipTrue: uint8(len(r.Families) - i)})
	}
	p = append(p, refuse(r.EAFNOSUPPORT), argument(2))
	for _, protocol := range r.Protocols {
		p = append(p, onEqual(protocol, refuse(r.EPROTONOSUPPORT))...)
	}
	return append(p, bpf.RetConstant{Val: resultAllow})
}

// onEqual runs a block when the value that was loaded equals; the block returns.
func onEqual(value uint32, block ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: value, SkipTrue: uint8(len(block))}}, block...)
}

func argument(n uint32) bpf.Instruction {
	return bpf.LoadAbsolute{Off: offsetArgument + 8*n, Size: 4}
}

func refuse(errno uint32) bpf.Instruction { return bpf.RetConstant{Val: resultErrno | errno} }
