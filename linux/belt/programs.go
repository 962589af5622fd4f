package belt

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Program is one of the three or five, ready to load.
type Program struct {
	// Role is the part of the name that never changes: "minhost_e", "minhost_i", "minhost_s",
	// "minhost_c", "minhost_o".
	Role string
	// Name is Role and six hex digits of the sum of the instructions, 15 octets: what the kernel shows
	// for it, and how the belt knows its own.
	Name         string
	Type         ebpf.ProgramType
	Attach       ebpf.AttachType
	Instructions asm.Instructions
}

// Offsets in the structures that the kernel shows to programs; see linux/bpf.h.
const (
	skbMark    = 8   // struct __sk_buff
	skbIfindex = 40  // the device it leaves by, once routed
	skbSocket  = 168 // struct bpf_sock_common, or null

	sockProtocol = 12 // struct bpf_sock
	sockMark     = 16
	sockState    = 72 // struct bpf_sock and bpf_sock_common

	opsOp     = 0 // struct bpf_sock_ops
	opsSocket = 184

	optValue  = 8 // struct bpf_sockopt
	optEnd    = 16
	optLevel  = 24
	optName   = 28
	optLength = 32
)

const (
	stateListen     = 10 // TCP_LISTEN
	stateNewSynRecv = 12 // TCP_NEW_SYN_RECV, a request socket
	protocolTCP     = 6
	ifindexLo       = 1 // in every network namespace
)

// Programs returns egress, ingress and setsockopt, in this order, and create and begin where they
// are needed.
func Programs(c Config) ([]Program, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	out := []Program{
		{Role: "minhost_e", Type: ebpf.CGroupSKB, Attach: ebpf.AttachCGroupInetEgress, Instructions: egress(c)},
		{Role: "minhost_i", Type: ebpf.CGroupSKB, Attach: ebpf.AttachCGroupInetIngress, Instructions: ingress(c)},
		{Role: "minhost_s", Type: ebpf.CGroupSockopt, Attach: ebpf.AttachCGroupSetsockopt, Instructions: setsockopt(c)},
	}
	if c.MarkForeign {
		out = append(out,
			Program{Role: "minhost_c", Type: ebpf.CGroupSock, Attach: ebpf.AttachCGroupInetSockCreate, Instructions: create(c)},
			Program{Role: "minhost_o", Type: ebpf.SockOps, Attach: ebpf.AttachCGroupSockOps, Instructions: begin(c)})
	}
	for i := range out {
		// Marshal also resolves the jumps, which comparing with a loaded program needs.
		var code bytes.Buffer
		if err := out[i].Instructions.Marshal(&code, binary.LittleEndian); err != nil {
			return nil, fmt.Errorf("belt: assemble %s: %w", out[i].Role, err)
		}
		sum := sha256.Sum256(code.Bytes())
		out[i].Name = out[i].Role + hex.EncodeToString(sum[:3])
	}
	return out, nil
}

func egress(c Config) asm.Instructions {
	return append(ofHost(c),
		// A SYN-ACK carries no mark: nftables' socket match does not see its request socket. The kernel
		// shows such a packet with the request socket or with the listener. Only TCP: a listening SCTP
		// socket has the same state and can send what it likes.
		asm.LoadMem(asm.R1, asm.R6, skbSocket, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, "judge"),
		asm.LoadMem(asm.R2, asm.R1, sockState, asm.Word),
		asm.JEq.Imm(asm.R2, stateNewSynRecv, "pass"),
		asm.JNE.Imm(asm.R2, stateListen, "judge"),
		asm.FnSkFullsock.Call(),
		asm.JEq.Imm(asm.R0, 0, "judge"),
		asm.LoadMem(asm.R2, asm.R0, sockProtocol, asm.Word),
		asm.JEq.Imm(asm.R2, protocolTCP, "pass"),

		asm.LoadMem(asm.R2, asm.R6, skbMark, asm.Word).WithSymbol("judge"),
		asm.Mov.Reg(asm.R3, asm.R2),
		asm.And.Imm(asm.R3, int32(c.Approve)),
		asm.JEq.Imm(asm.R3, 0, "drop"),
		asm.Mov.Reg(asm.R3, asm.R2),
		asm.And.Imm(asm.R3, int32(c.Lease)),
		asm.JEq.Imm(asm.R3, 0, "clear"),
		asm.LoadMem(asm.R3, asm.R6, skbIfindex, asm.Word),
		asm.JNE.Imm(asm.R3, ifindexLo, "drop"),
		asm.And.Imm(asm.R2, int32(^c.Approve)).WithSymbol("clear"),
		asm.StoreMem(asm.R6, skbMark, asm.R2, asm.Word),

		asm.Mov.Imm(asm.R0, 1).WithSymbol("pass"),
		asm.Return(),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("drop"),
		asm.Return(),
	)
}

func ingress(c Config) asm.Instructions {
	return append(ofHost(c),
		asm.LoadMem(asm.R2, asm.R6, skbMark, asm.Word),
		asm.And.Imm(asm.R2, int32(c.Admit)),
		asm.JEq.Imm(asm.R2, 0, "drop"),
		asm.Mov.Imm(asm.R0, 1).WithSymbol("pass"),
		asm.Return(),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("drop"),
		asm.Return(),
	)
}
