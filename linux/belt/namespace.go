package belt

import "github.com/cilium/ebpf/asm"

// inNamespace jumps to pass unless the socket is of the host's network namespace, or every one is meant.
// It leaves the context in R6.
func inNamespace(c Config, every bool) asm.Instructions {
	if every {
		return asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
	}
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.FnGetNetnsCookie.Call(),
		asm.LoadImm(asm.R2, int64(c.NetnsCookie), asm.DWord),
		asm.JNE.Reg(asm.R0, asm.R2, "pass"),
	}
}

// Numbers of linux/bpf.h and asm-generic/socket.h.
const (
	opConnect = 3  // BPF_SOCK_OPS_TCP_CONNECT_CB, before the SYN
	opListen  = 11 // BPF_SOCK_OPS_TCP_LISTEN_CB
	solSocket = 1
	soMark    = 36
)

// ofHost does the same for a packet, by the mark of its socket where the kernel does not tell. What has
// no full socket, or one from before the belt, counts as the host's.
func ofHost(c Config) asm.Instructions {
	if !c.MarkForeign {
		return inNamespace(c, c.EveryPacket)
	}
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R1, asm.R6, skbSocket, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, "host"),
		asm.FnSkFullsock.Call(),
		asm.JEq.Imm(asm.R0, 0, "host"),
		asm.LoadMem(asm.R1, asm.R0, sockMark, asm.Word),
		asm.And.Imm(asm.R1, int32(c.Foreign)),
		asm.JNE.Imm(asm.R1, 0, "pass"),
		asm.Mov.Imm(asm.R1, 0).WithSymbol("host"),
	}
}

// create marks a new socket of another network namespace. A socket never changes its namespace.
func create(c Config) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.FnGetNetnsCookie.Call(),
		asm.LoadImm(asm.R2, int64(c.NetnsCookie), asm.DWord),
		asm.JEq.Reg(asm.R0, asm.R2, "pass"),
		asm.LoadMem(asm.R1, asm.R6, sockMark, asm.Word),
		asm.Or.Imm(asm.R1, int32(c.Foreign)),
		asm.StoreMem(asm.R6, sockMark, asm.R1, asm.Word),
		asm.Mov.Imm(asm.R0, 1).WithSymbol("pass"),
		asm.Return(),
	}
}

// begin does the same for sockets that the kernel makes, which create is not asked about: the TCP sockets
// below an MPTCP one, which every listener of a Go program is.
func begin(c Config) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R6, opsOp, asm.Word),
		asm.JEq.Imm(asm.R2, opConnect, "ask"),
		asm.JNE.Imm(asm.R2, opListen, "pass"),
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("ask"),
		asm.FnGetNetnsCookie.Call(),
		asm.LoadImm(asm.R2, int64(c.NetnsCookie), asm.DWord),
		asm.JEq.Reg(asm.R0, asm.R2, "pass"),
		asm.LoadMem(asm.R1, asm.R6, opsSocket, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, "pass"),
		asm.LoadMem(asm.R2, asm.R1, sockMark, asm.Word),
		asm.Or.Imm(asm.R2, int32(c.Foreign)),
		asm.StoreMem(asm.RFP, -4, asm.R2, asm.Word),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, solSocket),
		asm.Mov.Imm(asm.R3, soMark),
		asm.Mov.Reg(asm.R4, asm.RFP),
		asm.Add.Imm(asm.R4, -4),
		asm.Mov.Imm(asm.R5, 4),
		asm.FnSetsockopt.Call(),
		asm.Mov.Imm(asm.R0, 1).WithSymbol("pass"),
		asm.Return(),
	}
}
