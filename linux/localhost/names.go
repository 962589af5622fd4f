package localhost

import "github.com/cilium/ebpf/asm"

// recvmsg4 shows the peer that was asked for as the sender of a datagram. Only sockets with a note are
// concerned: what was bound or dialled by the own address is shown by it.
func recvmsg4(c Config) asm.Instructions {
	return join(begin4(c), peerWords(show4), pass())
}

func recvmsg6(c Config) asm.Instructions {
	return join(begin6(c), unlessPure("mapped"), senderSix(), jump("pass"), at("mapped", peerWords(show6)), pass())
}

// getpeername is the same question for connections.
func getpeername4(c Config) asm.Instructions { return recvmsg4(c) }

func getpeername6(c Config) asm.Instructions {
	return join(begin6(c), unlessPure("mapped"), showPort(notePeerPort, "pass"), jump("pass"),
		at("mapped", peerWords(show6)), pass())
}

func getsockname4(c Config) asm.Instructions {
	return join(begin4(c), localWords(show4), pass())
}

func getsockname6(c Config) asm.Instructions {
	return join(begin6(c), unlessPure("mapped"), localSix(), at("mapped", localWords(show6)), pass())
}

func begin4(c Config) asm.Instructions {
	return join(
		asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R9, asm.R6, ctxIP4, asm.Word),
		},
		unlessLoopback("pass"), home(c), unlessKnown())
}

func begin6(c Config) asm.Instructions {
	return join(asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}, classify(), unlessLoopback("pass"), home(c), unlessKnown())
}

func unlessKnown() asm.Instructions { return note(0, "pass") }

// show writes an address into the reply: from the note in R8 at an offset, or the loopback address.
type show func(address int16) asm.Instructions

const theLoopback = -1

func show4(address int16) asm.Instructions {
	if address == theLoopback {
		return asm.Instructions{asm.Mov.Imm32(asm.R1, loopback), asm.StoreMem(asm.R6, ctxIP4, asm.R1, asm.Word), asm.Ja.Label("pass")}
	}
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R8, address+12, asm.Word),
		asm.StoreMem(asm.R6, ctxIP4, asm.R1, asm.Word),
		asm.Ja.Label("pass"),
	}
}

func show6(address int16) asm.Instructions {
	if address == theLoopback {
		return asm.Instructions{asm.Mov.Imm32(asm.R1, loopback), asm.StoreMem(asm.R6, ctxIP6+12, asm.R1, asm.Word), asm.Ja.Label("pass")}
	}
	var out asm.Instructions
	for i := int16(0); i < 16; i += 4 {
		out = append(out,
			asm.LoadMem(asm.R1, asm.R8, address+i, asm.Word),
			asm.StoreMem(asm.R6, ctxIP6+i, asm.R1, asm.Word))
	}
	return append(out, asm.Ja.Label("pass"))
}

// peerWords: the own address is the peer that was asked for, or localhost to a listener; 127.0.0.1 is the
// host when the host was asked for.
func peerWords(to show) asm.Instructions {
	return join(
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.R8, notePeerSet, asm.Word),
			asm.JEq.Reg32(asm.R9, asm.R7, "own"),
			asm.JNE.Imm32(asm.R9, loopback, "pass"),
			asm.JEq.Imm(asm.R1, 0, "pass"),
			asm.LoadMem(asm.R1, asm.R8, notePeer+12, asm.Word),
			asm.JNE.Imm32(asm.R1, hostWord, "pass"),
		},
		at("asked", to(notePeer)),
		asm.Instructions{asm.JNE.Imm(asm.R1, 0, "asked").WithSymbol("own")},
		asOwnLoopback(to),
	)
}

// asOwnLoopback shows localhost in the family in which the socket was bound: a listener on ::1 knows ::1.
func asOwnLoopback(to show) asm.Instructions {
	return join(
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.R8, noteLocal+12, asm.Word),
			asm.JEq.Imm32(asm.R1, oneWord, "bound"),
		},
		to(theLoopback),
		at("bound", to(noteLocal)))
}

// localWords: a listener and an unconnected socket show what bind was asked for, a connection what was
// dialled.
func localWords(to show) asm.Instructions {
	return join(
		asm.Instructions{
			asm.JNE.Reg32(asm.R9, asm.R7, "pass"),
			asm.LoadMem(asm.R1, asm.R8, noteLocalSet, asm.Word),
			asm.JEq.Imm(asm.R1, 0, "client"),
			asm.LoadMem(asm.R1, asm.R8, noteLocal+12, asm.Word),
			asm.JNE.Imm(asm.R1, 0, "local"), // bound on localhost: always that
			asm.LoadMem(asm.R2, asm.R6, ctxSocket, asm.DWord),
			asm.JEq.Imm(asm.R2, 0, "pass"),
			asm.LoadMem(asm.R1, asm.R2, sockState, asm.Word),
			asm.JEq.Imm(asm.R1, stateListen, "local"),
			asm.JEq.Imm(asm.R1, stateClose, "local"),
			// Bound on a wildcard and connected: to the box itself, or to somebody who dialled the address.
			asm.LoadMem(asm.R1, asm.R2, sockDstIP4, asm.Word),
			asm.JNE.Reg32(asm.R1, asm.R7, "pass"),
			asm.Ja.Label("loopback"),

			asm.LoadMem(asm.R1, asm.R8, notePeerSet, asm.Word).WithSymbol("client"),
			asm.JEq.Imm(asm.R1, 0, "pass"),
			asm.LoadMem(asm.R1, asm.R8, notePeer+12, asm.Word),
			asm.JEq.Imm32(asm.R1, oneWord, "peer"), // ::1 at both ends
		},
		at("loopback", to(theLoopback)),
		at("peer", to(notePeer)),
		at("local", to(noteLocal)))
}

// localSix: a connection is at ::1, a listener and an unconnected socket where bind was asked for.
func localSix() asm.Instructions {
	return join(
		showPort(noteLocalPort, "pass"),
		asm.Instructions{
			asm.LoadMem(asm.R2, asm.R6, ctxSocket, asm.DWord),
			asm.JEq.Imm(asm.R2, 0, "pass"),
			asm.LoadMem(asm.R1, asm.R2, sockState, asm.Word),
			asm.JEq.Imm(asm.R1, stateListen, "local"),
			asm.JEq.Imm(asm.R1, stateClose, "local"),
			asm.Ja.Label("pass"),
		})
}
