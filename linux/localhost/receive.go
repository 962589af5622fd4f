package localhost

import (
	"errors"

	"github.com/cilium/ebpf/asm"
)

// Marks are how the table and the guard speak about packets that boxes send over lo.
type Marks struct {
	// Sent is the priority that the table gives such a packet, but for the bits in Vary.
	Sent, Vary uint32
	// Admit is the bit of the mark that the table's input hook sets on what may be received.
	Admit uint32
}

// DefaultMarks returns the bits of DESIGN.md section 2.
func DefaultMarks() Marks { return Marks{Sent: 0x60000000, Vary: 0x1000ffff, Admit: 0x08000000} }

// Check says what is wrong with marks.
func (m Marks) Check() error {
	if m.Sent == 0 || m.Sent&m.Vary != 0 || m.Admit == 0 {
		return errors.New("localhost: marks: nothing to know a packet of a box by")
	}
	return nil
}

// Offsets in struct __sk_buff; see linux/bpf.h.
const (
	skbMark     = 8
	skbPriority = 32
	skbIfindex  = 40
)

// receive, at the root of the hierarchy, lets no socket receive what a box sent over lo and the table's input
// hook did not admit. The table lets such packets go as far as the receiver, since only there is it known whose
// socket it is: when somebody empties the input chain alone they would arrive. A packet of the host costs one
// comparison. It is known by its priority, which no process without CAP_NET_ADMIN can make such; another
// network namespace is not told apart (kernels before 6.15 cannot): there nothing has this priority either.
func receive(c Config) asm.Instructions {
	return join(
		asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, skbPriority, asm.Word),
			asm.And.Imm32(asm.R2, int32(^c.Marks.Vary)),
			asm.JNE.Imm32(asm.R2, int32(c.Marks.Sent), "pass"),
			asm.LoadMem(asm.R2, asm.R1, skbIfindex, asm.Word),
			asm.JNE.Imm32(asm.R2, 1, "pass"), // lo is link 1 in every network namespace
			asm.LoadMem(asm.R2, asm.R1, skbMark, asm.Word),
			asm.And.Imm32(asm.R2, int32(c.Marks.Admit)),
			asm.JNE.Imm32(asm.R2, 0, "pass"),
			asm.Mov.Imm(asm.R0, 0),
			asm.Return(),
		},
		pass())
}
