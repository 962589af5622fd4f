package localhost

import "github.com/cilium/ebpf/asm"

// bindNoCapability (3) lets a bind through, also to a port below 1024.
const bindNoCapability = 3

// bind4 rewrites 0.0.0.0 and 127.0.0.1 to the own address and refuses the rest of 127.0.0.0/8. Port 0 stays:
// clients bind wildcards, and from a loopback address they would reach nothing elsewhere (EINVAL).
func bind4(c Config) asm.Instructions {
	return join(
		asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R9, asm.R6, ctxIP4, asm.Word),
			asm.JEq.Imm(asm.R9, 0, "look"),
		},
		unlessLoopback("pass"),
		at("look", home(c)),
		unless(flagOwn, "pass"),
		judgeBind(),
		at("rewrite", note(1, "write")),
		remember4(noteLocalSet, noteLocalPort, noteLocal),
		mirror(c, ""),
		asm.Instructions{
			asm.StoreMem(asm.R6, ctxIP4, asm.R7, asm.Word).WithSymbol("write"),
			asm.Mov.Imm(asm.R0, bindNoCapability),
			asm.Return(),
		},
		own(), deny(), pass())
}

// bind6 does the same for IPv6 sockets, to the mapped own address. One that takes no IPv4 cannot have that:
// it gets a port of [::1] that is free, so that it never is in another box's way (six.go).
func bind6(c Config) asm.Instructions {
	return join(
		asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)},
		classify(),
		asm.Instructions{asm.JEq.Imm(asm.R9, 0, "look")},
		unlessLoopback("pass"),
		at("look", home(c)),
		unless(flagOwn, "pass"),
		judgeBind(),
		at("rewrite", unlessPure("mapped")),
		sixOnly("six"),
		// ::1 for datagrams too: a reply to ::1 could not be sent from the own address.
		asm.Instructions{
			asm.JEq.Imm(asm.R9, 0, "mapped"),
			asm.LoadMem(asm.R1, asm.R6, ctxProtocol, asm.Word),
			asm.JEq.Imm(asm.R1, protocolUDP, "six"),
		},
		taken(),
		at("mapped", note(1, "write")),
		remember6(noteLocalSet, noteLocalPort, noteLocal),
		mirror(c, ""),
		at("write", writeMapped(asm.R7)),
		asm.Instructions{asm.Mov.Imm(asm.R0, bindNoCapability), asm.Return()},
		bindSix(c), own(), deny(), pass())
}

// judgeBind goes to rewrite, own, deny or pass by the address in R9.
func judgeBind() asm.Instructions {
	return join(
		asm.Instructions{
			asm.JEq.Imm32(asm.R9, loopback, "fixed"),
			asm.JEq.Imm(asm.R9, 0, "wildcard"),
			asm.JEq.Reg32(asm.R9, asm.R7, "own"),
			asm.Ja.Label("deny"),

			asm.LoadMem(asm.R1, asm.R6, ctxPort, asm.Word).WithSymbol("fixed"),
			asm.JEq.Imm(asm.R1, 0, "pass"),
			asm.Ja.Label("rewrite"),

			asm.LoadMem(asm.R1, asm.R6, ctxPort, asm.Word).WithSymbol("wildcard"),
			asm.JEq.Imm(asm.R1, 0, "pass"),
			asm.LoadMem(asm.R1, asm.R6, ctxProtocol, asm.Word),
			asm.JEq.Imm(asm.R1, protocolTCP, "closed"),
			asm.JNE.Imm(asm.R1, protocolUDP, "pass"),
		},
		unless(flagUDPWild, "pass"),
		asm.Instructions{
			asm.Mov.Reg(asm.R1, asm.R8).WithSymbol("closed"),
			asm.And.Imm(asm.R1, flagOpenAll),
			asm.JNE.Imm(asm.R1, 0, "pass"),
		},
		unless(flagOpenPorts, "rewrite"),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, atLeaf, asm.DWord),
			asm.StoreMem(asm.RFP, atPort, asm.R1, asm.DWord),
			asm.LoadMem(asm.R1, asm.R6, ctxPort, asm.Word),
			asm.StoreMem(asm.RFP, atPort+8, asm.R1, asm.DWord),
			mapPointer(mapPorts),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, atPort),
			asm.FnMapLookupElem.Call(),
			asm.JNE.Imm(asm.R0, 0, "pass"),
		})
}

// own lets the box bind its own address, whatever the port.
func own() asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R0, bindNoCapability).WithSymbol("own"), asm.Return()}
}

// remember4 and remember6 write the address of the call into the note in R8.
func remember4(set, port, address int16) asm.Instructions {
	return asm.Instructions{
		asm.StoreImm(asm.R8, set, 1, asm.Word),
		asm.StoreImm(asm.R8, port, 0, asm.Word),
		asm.StoreImm(asm.R8, address, 0, asm.Word),
		asm.StoreImm(asm.R8, address+4, 0, asm.Word),
		asm.Mov.Imm32(asm.R1, mappedWord),
		asm.StoreMem(asm.R8, address+8, asm.R1, asm.Word),
		asm.StoreMem(asm.R8, address+12, asm.R9, asm.Word),
	}
}

func remember6(set, port, address int16) asm.Instructions {
	out := asm.Instructions{
		asm.StoreImm(asm.R8, set, 1, asm.Word),
		asm.StoreImm(asm.R8, port, 0, asm.Word),
	}
	for i := int16(0); i < 16; i += 4 {
		out = append(out,
			asm.LoadMem(asm.R1, asm.R6, ctxIP6+i, asm.Word),
			asm.StoreMem(asm.R8, address+i, asm.R1, asm.Word))
	}
	return out
}

// writeMapped makes the call's address ::ffff:a.b.c.d, from a register. The first words are 0 already.
func writeMapped(from asm.Register) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm32(asm.R1, mappedWord),
		asm.StoreMem(asm.R6, ctxIP6+8, asm.R1, asm.Word),
		asm.StoreMem(asm.R6, ctxIP6+12, from, asm.Word),
	}
}

// taken goes to six when a listener of the box has the port on IPv4 alone: [::1] is beside 127.0.0.1 then, as
// elsewhere. One that was bound on :: or ::1 is in the way, which the kernel says of the mapped address.
func taken() asm.Instructions {
	return join(
		ownTuple(),
		asm.Instructions{
			asm.FnSkLookupTcp.Call(),
			asm.JEq.Imm(asm.R0, 0, "mapped"),
			asm.Mov.Reg(asm.R8, asm.R0),
			asm.Mov.Imm(asm.R9, 0),
			asm.LoadMem(asm.R1, asm.R8, sockSrcIP4, asm.Word),
			asm.JNE.Reg32(asm.R1, asm.R7, "looked"),
			asm.Mov.Imm32(asm.R9, mappedWord),
			mapPointer(mapNotes),
			asm.Mov.Reg(asm.R2, asm.R8),
			asm.Mov.Imm(asm.R3, 0),
			asm.Mov.Imm(asm.R4, 0),
			asm.FnSkStorageGet.Call(),
			asm.JEq.Imm(asm.R0, 0, "looked"),
			asm.LoadMem(asm.R9, asm.R0, noteLocal+8, asm.Word),
			asm.Mov.Reg(asm.R1, asm.R8).WithSymbol("looked"),
			asm.FnSkRelease.Call(),
			asm.JEq.Imm32(asm.R9, mappedWord, "six"),
		})
}
