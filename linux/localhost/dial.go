package localhost

import "github.com/cilium/ebpf/asm"

// connect4 and its kin send what a box dials at localhost to its own listener on that port. Where it has
// none the address stays, and the table decides: the host's service, where a rule admits it.
func connect4(c Config) asm.Instructions { return dial4(c, true) }
func sendmsg4(c Config) asm.Instructions { return join(ownSource(c), dial4(c, false)) }

// ownSource lets a socket that is bound to the own address send from no other one of 127.0.0.0/8, whatever the
// control data of the message says (IP_PKTINFO): ports below 1024 are free there, and 127.0.0.1:53 is not.
func ownSource(c Config) asm.Instructions {
	return join(
		asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R1, asm.R6, ctxSocket, asm.DWord),
			asm.JEq.Imm(asm.R1, 0, "source"),
			asm.LoadMem(asm.R8, asm.R1, sockSrcIP4, asm.Word),
			asm.JEq.Imm(asm.R8, 0, "source"),
			asm.LoadMem(asm.R9, asm.R6, ctxSrcIP4, asm.Word),
			asm.JEq.Reg32(asm.R9, asm.R8, "source"),
		},
		unlessLoopback("source"), home(c),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.R6, ctxSocket, asm.DWord),
			asm.JEq.Imm(asm.R1, 0, "source"),
			asm.LoadMem(asm.R1, asm.R1, sockSrcIP4, asm.Word),
			asm.JNE.Reg32(asm.R1, asm.R7, "source"),
			asm.StoreMem(asm.R6, ctxSrcIP4, asm.R7, asm.Word),
			asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("source"),
		})
}

func dial4(c Config, connect bool) asm.Instructions {
	known := asm.Instructions{asm.Ja.Label("remember")}
	above := func(string) asm.Instructions { return nil }
	source := asm.Instructions{
		// An unconnected socket sends from its wildcard: from the own address then.
		asm.LoadMem(asm.R1, asm.R6, ctxSrcIP4, asm.Word),
		asm.JNE.Imm(asm.R1, 0, "pass"),
		asm.StoreMem(asm.R6, ctxSrcIP4, asm.R7, asm.Word),
	}
	if connect {
		source = bindSource(familyIP4)
		above = func(suffix string) asm.Instructions { return mirror(c, suffix) }
	} else {
		known = connected()
	}
	return join(
		asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R9, asm.R6, ctxIP4, asm.Word),
			asm.JEq.Imm(asm.R9, 0, "look"),
		},
		unlessLoopback("pass"),
		at("look", home(c)),
		judgeDial(),
		asm.Instructions{
			// Dialling 0.0.0.0 means 127.0.0.1.
			asm.JNE.Imm(asm.R9, 0, "note"),
			asm.Mov.Imm32(asm.R9, loopback),
		},
		at("note", known),
		at("remember", note(1, "write")),
		remember4(notePeerSet, notePeerPort, notePeer),
		above(""),
		asm.Instructions{asm.StoreMem(asm.R6, ctxIP4, asm.R7, asm.Word).WithSymbol("write")},
		source,
		jump("pass"),
		at("host", note(1, "write host")),
		remember4(notePeerSet, notePeerPort, notePeer),
		above(" host"),
		asm.Instructions{
			asm.Mov.Imm32(asm.R1, loopback).WithSymbol("write host"),
			asm.StoreMem(asm.R6, ctxIP4, asm.R1, asm.Word),
		},
		pass())
}

// connected jumps to pass for a socket that connect was asked about already: what an IPv6 socket sends on a
// connection to a mapped address comes by here again.
func connected() asm.Instructions {
	return asm.Instructions{
		asm.JNE.Reg32(asm.R9, asm.R7, "remember"),
		asm.LoadMem(asm.R1, asm.R6, ctxSocket, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, "write"),
		asm.LoadMem(asm.R1, asm.R1, sockState, asm.Word),
		asm.JEq.Imm(asm.R1, stateEstablished, "pass"),
	}
}

// sendmsg6: what is sent without a connection to a mapped address goes through sendmsg4, and ::1 cannot be
// made one here (the kernel answers ENOTSUPP): only what was bound on ::1 is found.
func sendmsg6(c Config) asm.Instructions {
	return join(
		asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)},
		classify(),
		unlessPure("pass"),
		home(c),
		unless(flagOwn, "pass"),
		dialSix(Config{}, "pass"),
		pass())
}

func connect6(c Config) asm.Instructions {
	return join(
		asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)},
		classify(),
		asm.Instructions{asm.JEq.Imm(asm.R9, 0, "look")},
		unlessLoopback("pass"),
		at("look", home(c)),
		unlessPure("judge"),
		unless(flagOwn, "pass"),
		dialSix(c, "no six"),
		asm.Instructions{asm.Mov.Imm(asm.R1, 0).WithSymbol("no six")},
		sixOnly("pass"),
		asm.Instructions{asm.Mov.Imm(asm.R8, flagOwn)}, // it was looked at
		at("judge", judgeDial()),
		at("note", note(1, "write")),
		remember6(notePeerSet, notePeerPort, notePeer),
		asm.Instructions{
			// Dialling :: means ::1, and ::ffff:0.0.0.0 means 127.0.0.1.
			asm.JNE.Imm(asm.R9, 0, "known"),
			asm.Mov.Imm32(asm.R1, oneWord),
			asm.LoadMem(asm.R2, asm.RFP, atPure, asm.Word),
			asm.JNE.Imm(asm.R2, 0, "any"),
			asm.Mov.Imm32(asm.R1, loopback),
			asm.StoreMem(asm.R8, notePeer+12, asm.R1, asm.Word).WithSymbol("any"),
		},
		asm.Instructions{asm.Mov.Imm(asm.R1, 0).WithSymbol("known")},
		mirror(c, ""),
		at("write", writeMapped(asm.R7)),
		bindSource(familyIP6),
		jump("pass"),
		at("host", note(1, "write host")),
		remember6(notePeerSet, notePeerPort, notePeer),
		mirror(c, " host"),
		asm.Instructions{
			asm.Mov.Imm32(asm.R1, loopback).WithSymbol("write host"),
			asm.StoreMem(asm.R6, ctxIP6+12, asm.R1, asm.Word),
		},
		pass())
}

// judgeDial goes on when the own listener is meant, to note when the own address was dialled, to host or to
// pass.
func judgeDial() asm.Instructions {
	return join(
		asm.Instructions{asm.JEq.Imm32(asm.R9, hostWord, "host")},
		unless(flagOwn, "pass"),
		asm.Instructions{asm.JEq.Reg32(asm.R9, asm.R7, "note")}, // so that it is shown again
		ifLeased("pass"),
		listener())
}

// listener jumps to pass unless a socket is bound to the own address on the port that is dialled. One bound
// to a wildcard is somebody's: at 127.0.0.1 it is found too. The address of the box is nobody's but the
// box's, so whoever is bound to it is the box. 127.0.0.2 and the rest of 127.0.0.0/8 reach what was bound
// on a wildcard, as always.
func listener() asm.Instructions {
	return join(ownTuple(), asm.Instructions{
		// A connected UDP socket is found by who it is connected to: the sender.
		asm.JNE.Imm(asm.R8, protocolUDP, "lookup"),
		asm.LoadMem(asm.R1, asm.R6, ctxSocket, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, "lookup"),
		asm.LoadMem(asm.R1, asm.R1, sockSrcPort, asm.Word),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.StoreMem(asm.RFP, atTuple+8, asm.R1, asm.Half),
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("lookup"),
		asm.JEq.Imm(asm.R8, protocolTCP, "find tcp"),
		asm.JNE.Imm(asm.R8, protocolUDP, "pass"),
		asm.FnSkLookupUdp.Call(),
		asm.Ja.Label("found"),
		asm.FnSkLookupTcp.Call().WithSymbol("find tcp"),
		asm.JEq.Imm(asm.R0, 0, "pass").WithSymbol("found"),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.LoadMem(asm.R1, asm.R8, sockSrcIP4, asm.Word),
		asm.JNE.Reg32(asm.R1, asm.R7, "not own"),
		asm.JEq.Imm(asm.R9, 0, "own listener"),
		asm.JEq.Imm32(asm.R9, loopback, "own listener"),
		mapPointer(mapNotes),
		asm.Mov.Reg(asm.R2, asm.R8),
		asm.Mov.Imm(asm.R3, 0),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnSkStorageGet.Call(),
		asm.JEq.Imm(asm.R0, 0, "not own"),
		asm.LoadMem(asm.R1, asm.R0, noteLocal+12, asm.Word),
		asm.JEq.Imm(asm.R1, 0, "own listener"),

		asm.Mov.Reg(asm.R1, asm.R8).WithSymbol("not own"),
		asm.FnSkRelease.Call(),
		asm.Ja.Label("pass"),

		asm.Mov.Reg(asm.R1, asm.R8).WithSymbol("own listener"),
		asm.FnSkRelease.Call(),
	})
}

// ownTuple prepares the lookup of a socket at the own address on the port of the call: its protocol is in R8.
func ownTuple() asm.Instructions {
	return asm.Instructions{
		asm.StoreMem(asm.RFP, atTuple, asm.R7, asm.Word),
		asm.StoreMem(asm.RFP, atTuple+4, asm.R7, asm.Word),
		asm.StoreImm(asm.RFP, atTuple+8, 0, asm.Half),
		asm.LoadMem(asm.R1, asm.R6, ctxPort, asm.Word),
		asm.StoreMem(asm.RFP, atTuple+10, asm.R1, asm.Half),
		asm.LoadMem(asm.R8, asm.R6, ctxProtocol, asm.Word),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, atTuple),
		asm.Mov.Imm(asm.R3, 12),
		asm.Mov.Imm(asm.R4, -1), // BPF_F_CURRENT_NETNS
		asm.Mov.Imm(asm.R5, 0),
	}
}

// bindSource binds a client to the own address, so that the listener can send to where it heard from. One
// that is bound already stays as it is.
func bindSource(family int64) asm.Instructions {
	out := asm.Instructions{
		asm.StoreImm(asm.RFP, atAddr, family, asm.Word),
		asm.StoreImm(asm.RFP, atAddr+4, 0, asm.Word),
		asm.StoreImm(asm.RFP, atAddr+8, 0, asm.Word),
		asm.StoreImm(asm.RFP, atAddr+8+4, 0, asm.Word),
		asm.StoreImm(asm.RFP, atAddr+16, 0, asm.Word),
		asm.StoreImm(asm.RFP, atAddr+16+4, 0, asm.Word),
		asm.StoreImm(asm.RFP, atAddr+24, 0, asm.Word),
	}
	length := int32(16)
	if family == familyIP6 {
		length = 28
		out = append(out,
			asm.Mov.Imm32(asm.R1, mappedWord),
			asm.StoreMem(asm.RFP, atAddr+16, asm.R1, asm.Word),
			asm.StoreMem(asm.RFP, atAddr+20, asm.R7, asm.Word))
	} else {
		out = append(out, asm.StoreMem(asm.RFP, atAddr+4, asm.R7, asm.Word))
	}
	return append(out,
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, atAddr),
		asm.Mov.Imm(asm.R3, length),
		asm.FnBind.Call())
}
