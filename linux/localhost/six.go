package localhost

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// An IPv6 socket that takes no IPv4 cannot be bound to 127.0.64.N, and what is sent to ::1 without a
// connection cannot be sent there. There is one ::1 for all, so it is the port that is the box's own: such a
// socket is bound to [::1] on a port that is free, and a map tells which port of the box that is.

// More places on the stack; the key of the map of ports is that of sixes too, with the protocol behind.
const atReal = -108 // the port that stands for the one asked for

// postBind6 tells the map which port bind took. The context is the socket.
func postBind6(c Config) asm.Instructions {
	return join(
		asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R1, asm.R6, sockSrcIP6+12, asm.Word),
			asm.JNE.Imm32(asm.R1, oneWord, "pass"),
			mapPointer(mapNotes),
			asm.Mov.Reg(asm.R2, asm.R6),
			asm.Mov.Imm(asm.R3, 0),
			asm.Mov.Imm(asm.R4, 0),
			asm.FnSkStorageGet.Call(),
			asm.JEq.Imm(asm.R0, 0, "pass"),
			asm.LoadMem(asm.R7, asm.R0, noteLocalPort, asm.Word),
			asm.JEq.Imm(asm.R7, 0, "pass"),
			asm.Mov.Imm(asm.R1, int32(c.Level)),
			asm.FnGetCurrentAncestorCgroupId.Call(),
			asm.StoreMem(asm.RFP, atPort, asm.R0, asm.DWord),
			asm.StoreMem(asm.RFP, atPort+8, asm.R7, asm.Word),
			asm.LoadMem(asm.R1, asm.R6, sockProto, asm.Word),
			asm.StoreMem(asm.RFP, atPort+12, asm.R1, asm.Word),
			asm.LoadMem(asm.R1, asm.R6, sockSrcPort, asm.Word),
			asm.HostTo(asm.BE, asm.R1, asm.Half),
			asm.StoreMem(asm.RFP, atReal, asm.R1, asm.Word),
			mapPointer(mapSixes),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, atPort),
			asm.Mov.Reg(asm.R3, asm.RFP),
			asm.Add.Imm(asm.R3, atReal),
			asm.Mov.Imm(asm.R4, 0),
			asm.FnMapUpdateElem.Call(), // a full map costs the way in, not the bind
		},
		pass())
}

// six goes on when a live socket of the box stands for the port of the call, whose own port is at atReal
// then, and jumps otherwise. R8 is lost.
func six(none string) asm.Instructions {
	out := asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, atLeaf, asm.DWord),
		asm.StoreMem(asm.RFP, atPort, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R6, ctxPort, asm.Word),
		asm.StoreMem(asm.RFP, atPort+8, asm.R1, asm.Word),
		asm.LoadMem(asm.R8, asm.R6, ctxProtocol, asm.Word),
		asm.StoreMem(asm.RFP, atPort+12, asm.R8, asm.Word),
		mapPointer(mapSixes),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, atPort),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, none),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
		asm.StoreMem(asm.RFP, atReal, asm.R1, asm.Word),
	}
	return join(out, sixAt(), asm.Instructions{
		asm.JEq.Imm(asm.R0, 0, none),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.LoadMem(asm.R1, asm.R8, sockSrcIP6+12, asm.Word),
		asm.JNE.Imm32(asm.R1, oneWord, "not six"),
		mapPointer(mapNotes),
		asm.Mov.Reg(asm.R2, asm.R8),
		asm.Mov.Imm(asm.R3, 0),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnSkStorageGet.Call(),
		asm.JEq.Imm(asm.R0, 0, "not six"),
		asm.LoadMem(asm.R1, asm.R0, noteLeaf, asm.DWord), // by now the port may be another box's
		asm.LoadMem(asm.R2, asm.RFP, atLeaf, asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R2, "not six"),
		asm.LoadMem(asm.R1, asm.R0, noteLocalPort, asm.Word),
		asm.LoadMem(asm.R2, asm.R6, ctxPort, asm.Word),
		asm.JEq.Reg(asm.R1, asm.R2, "six alive"),
		asm.Mov.Reg(asm.R1, asm.R8).WithSymbol("not six"),
		asm.FnSkRelease.Call(),
		asm.Ja.Label(none),
		asm.Mov.Reg(asm.R1, asm.R8).WithSymbol("six alive"),
		asm.FnSkRelease.Call(),
	})
}

// sixAt looks for a socket at [::1] on the port at atReal, of the protocol in R8. The result is in R0, to be
// released.
func sixAt() asm.Instructions {
	var out asm.Instructions
	for i := int16(0); i < 32; i += 4 {
		out = append(out, asm.StoreImm(asm.RFP, atTuple+i, 0, asm.Word))
	}
	return append(out,
		asm.Mov.Imm32(asm.R1, oneWord),
		asm.StoreMem(asm.RFP, atTuple+12, asm.R1, asm.Word),
		asm.StoreMem(asm.RFP, atTuple+28, asm.R1, asm.Word),
		asm.StoreImm(asm.RFP, atTuple+32, 0, asm.Half),
		asm.LoadMem(asm.R1, asm.RFP, atReal, asm.Word),
		asm.StoreMem(asm.RFP, atTuple+34, asm.R1, asm.Half),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, atTuple),
		asm.Mov.Imm(asm.R3, 36),
		asm.Mov.Imm(asm.R4, -1), // BPF_F_CURRENT_NETNS
		asm.Mov.Imm(asm.R5, 0),
		asm.JEq.Imm(asm.R8, protocolTCP, "find tcp six"),
		asm.FnSkLookupUdp.Call(),
		asm.Ja.Label("found six"),
		asm.FnSkLookupTcp.Call().WithSymbol("find tcp six"),
		asm.Mov.Reg(asm.R1, asm.R0).WithSymbol("found six"),
	)
}

// bindSix binds to the port that stands for the one asked for, where a live socket has it: the kernel says
// then whether two may. Otherwise to one that is free.
func bindSix(c Config) asm.Instructions {
	return join(
		at("six", asm.Instructions{asm.StoreImm(asm.RFP, atReal, 0, asm.Word)}),
		six("free"),
		jump("note six"),
		asm.Instructions{asm.StoreImm(asm.RFP, atReal, 0, asm.Word).WithSymbol("free")},
		at("note six", note(1, "write six")),
		remember6(noteLocalSet, noteLocalPort, noteLocal),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.R6, ctxPort, asm.Word),
			asm.StoreMem(asm.R8, noteLocalPort, asm.R1, asm.Word),
			asm.LoadMem(asm.R1, asm.RFP, atLeaf, asm.DWord),
			asm.StoreMem(asm.R8, noteLeaf, asm.R1, asm.DWord),
		},
		mirror(c, " six"),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, atReal, asm.Word).WithSymbol("write six"),
			asm.StoreMem(asm.R6, ctxPort, asm.R1, asm.Word),
			asm.Mov.Imm32(asm.R1, oneWord),
			asm.StoreMem(asm.R6, ctxIP6+12, asm.R1, asm.Word),
			asm.Mov.Imm(asm.R0, bindNoCapability),
			asm.Return(),
		})
}

// dialSix sends a call to ::1 or :: to the socket that stands for the port, and jumps when there is none.
func dialSix(c Config, none string) asm.Instructions {
	return join(
		six(none),
		note(1, "write six"),
		remember6(notePeerSet, notePeerPort, notePeer),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.R6, ctxPort, asm.Word),
			asm.StoreMem(asm.R8, notePeerPort, asm.R1, asm.Word),
			asm.Mov.Imm32(asm.R1, oneWord),
			asm.StoreMem(asm.R8, notePeer+12, asm.R1, asm.Word),
		},
		mirror(c, " six"),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, atReal, asm.Word).WithSymbol("write six"),
			asm.StoreMem(asm.R6, ctxPort, asm.R1, asm.Word),
			asm.Mov.Imm32(asm.R1, oneWord),
			asm.StoreMem(asm.R6, ctxIP6+12, asm.R1, asm.Word),
			asm.Ja.Label("pass"),
		})
}

// unlessPure jumps when the call has a mapped address.
func unlessPure(label string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, atPure, asm.Word),
		asm.JEq.Imm(asm.R1, 0, label),
	}
}

// showPort writes a port of the note in R8 where it is not 0.
func showPort(port int16, label string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R8, port, asm.Word),
		asm.JEq.Imm(asm.R1, 0, label),
		asm.StoreMem(asm.R6, ctxPort, asm.R1, asm.Word),
	}
}

// senderSix shows the port that the box's own sender of a datagram from [::1] was bound with.
func senderSix() asm.Instructions {
	return join(
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.R6, ctxPort, asm.Word),
			asm.StoreMem(asm.RFP, atReal, asm.R1, asm.Word),
			asm.Mov.Imm(asm.R8, protocolUDP),
		},
		sixAt(),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "pass"),
			asm.Mov.Reg(asm.R8, asm.R0),
			mapPointer(mapNotes),
			asm.Mov.Reg(asm.R2, asm.R8),
			asm.Mov.Imm(asm.R3, 0),
			asm.Mov.Imm(asm.R4, 0),
			asm.FnSkStorageGet.Call(),
			asm.JEq.Imm(asm.R0, 0, "release"),
			asm.LoadMem(asm.R1, asm.R0, noteLeaf, asm.DWord),
			asm.LoadMem(asm.R2, asm.RFP, atLeaf, asm.DWord),
			asm.JNE.Reg(asm.R1, asm.R2, "release"),
			asm.LoadMem(asm.R1, asm.R0, noteLocalPort, asm.Word),
			asm.JEq.Imm(asm.R1, 0, "release"),
			asm.StoreMem(asm.R6, ctxPort, asm.R1, asm.Word),
			asm.Mov.Reg(asm.R1, asm.R8).WithSymbol("release"),
			asm.FnSkRelease.Call(),
		})
}

// kind is the type of program for a hook.
func kind(hook ebpf.AttachType) ebpf.ProgramType {
	switch hook {
	case ebpf.AttachCGroupInet6PostBind:
		return ebpf.CGroupSock
	case ebpf.AttachCGroupInetIngress:
		return ebpf.CGroupSKB
	}
	return ebpf.CGroupSockAddr
}
