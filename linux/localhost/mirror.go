package localhost

import "github.com/cilium/ebpf/asm"

// mirror copies the note in R8 to the MPTCP socket above the calling TCP one: bind and connect are shown the
// socket below, which takes the connections of plain TCP, and the names are asked for on the one above. Every
// listener of a Go program is one. R9 is lost. The labels get a suffix, since a program may do it twice.
func mirror(c Config, suffix string) asm.Instructions {
	if !c.Multipath {
		return nil
	}
	out := "mirrored" + suffix
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R6, ctxSocket, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, out),
		asm.FnSkcToMptcpSock.Call(),
		asm.JEq.Imm(asm.R0, 0, out),
		asm.Mov.Reg(asm.R9, asm.R0),
		mapPointer(mapNotes),
		asm.Mov.Reg(asm.R2, asm.R9),
		asm.FnSkStorageDelete.Call(), // an older note stays otherwise
		mapPointer(mapNotes),
		asm.Mov.Reg(asm.R2, asm.R9),
		asm.Mov.Reg(asm.R3, asm.R8),
		asm.Mov.Imm(asm.R4, 1),
		asm.FnSkStorageGet.Call(),
		asm.Mov.Imm(asm.R1, 0).WithSymbol(out),
	}
}
