package localhost

import "github.com/cilium/ebpf/asm"

// recvmsg4 shows the peer that was asked for as the sender of a datagram, and the box itself as localhost.
// What was bound or dialled by the own address is shown by it.
func recvmsg4(c Config) asm.Instructions {
	return join(begin4(c), note(0, "pass"), peerWords(show4), pass())
}

func recvmsg6(c Config) asm.Instructions {
	return join(begin6(c), unlessPure("mapped"), senderSix(), jump("pass"),
		at("mapped", note(0, "pass")), peerWords(show6), pass())
}

// getpeername is the same question for connections. A socket without a note was bound to the own address, or to
// what was not rewritten (port 0): then its peer is localhost too.
func getpeername4(c Config) asm.Instructions {
	return join(begin4(c), note(0, "unknown"), peerWords(show4), noNote(show4), pass())
}

func getpeername6(c Config) asm.Instructions {
	return join(begin6(c), unlessPure("mapped"), note(0, "pass"), showPort(notePeerPort, "pass"), jump("pass"),
		at("mapped", note(0, "unknown")), peerWords(show6), noNote(show6), pass())
}

func getsockname4(c Config) asm.Instructions {
	return join(begin4(c), note(0, "pass"), localWords(show4), pass())
}

func getsockname6(c Config) asm.Instructions {
	return join(begin6(c), note(0, "pass"), unlessPure("mapped"), localSix(), at("mapped", localWords(show6)), pass())
}

func begin4(c Config) asm.Instructions {
	return join(
		asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R9, asm.R6, ctxIP4, asm.Word),
		},
		unlessLoopback("pass"), home(c), unless(flagOwn, "pass"))
}

func begin6(c Config) asm.Instructions {
	return join(asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}, classify(), unlessLoopback("pass"), home(c), unless(flagOwn, "pass"))
}

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
		asm.Instructions{
			asm.JNE.Imm(asm.R1, 0, "asked").WithSymbol("own"),
			// In the family in which the socket was bound: a listener on ::1 knows ::1.
			asm.LoadMem(asm.R1, asm.R8, noteLocal+12, asm.Word),
			asm.JEq.Imm32(asm.R1, oneWord, "bound"),
		},
		to(theLoopback),
		at("bound", to(noteLocal)))
}

func noNote(to show) asm.Instructions {
	return join(asm.Instructions{
		asm.JNE.Reg32(asm.R9, asm.R7, "pass").WithSymbol("unknown"),
		asm.LoadMem(asm.R2, asm.R6, ctxSocket, asm.DWord),
		asm.JEq.Imm(asm.R2, 0, "pass"),
		asm.LoadMem(asm.R1, asm.R2, sockSrcIP4, asm.Word),
		asm.JEq.Reg32(asm.R1, asm.R7, "pass"),
	}, to(theLoopback))
}

// localWords: a listener and an unconnected socket show what bind was asked for, a connection what was
// dialled.
func localWords(to show) asm.Instructions {
	return join(
		asm.Instructions{
			asm.JNE.Reg32(asm.R9, asm.R7, "not own"),
			asm.LoadMem(asm.R1, asm.R8, noteLocalSet, asm.Word),
			asm.JEq.Imm(asm.R1, 0, "client"),
			asm.LoadMem(asm.R1, asm.R8, noteLocal+12, asm.Word),
			asm.JNE.Imm(asm.R1, 0, "local"), // bound on localhost: always that
			asm.LoadMem(asm.R2, asm.R6, ctxSocket, asm.DWord),
			asm.JEq.Imm(asm.R2, 0, "pass"),
			asm.LoadMem(asm.R1, asm.R2, sockState, asm.Word),
			asm.JEq.Imm(asm.R1, stateListen, "local"),
			asm.JEq.Imm(asm.R1, stateClose, "local"),
			// Bound on a wildcard and connected: it dialled, or it was dialled, by the box itself as localhost
			// or by somebody else at the address.
			asm.LoadMem(asm.R1, asm.R8, notePeerSet, asm.Word),
			asm.JNE.Imm(asm.R1, 0, "client"),
			asm.LoadMem(asm.R1, asm.R2, sockDstIP4, asm.Word),
			asm.JNE.Reg32(asm.R1, asm.R7, "pass"),
			asm.Ja.Label("loopback"),

			asm.LoadMem(asm.R1, asm.R8, notePeerSet, asm.Word).WithSymbol("client"),
			asm.JEq.Imm(asm.R1, 0, "pass"),
			asm.LoadMem(asm.R1, asm.R8, notePeer+12, asm.Word),
			asm.JEq.Imm32(asm.R1, oneWord, "peer"), // ::1 at both ends
			asm.JEq.Reg32(asm.R1, asm.R7, "pass"),
		},
		at("loopback", to(theLoopback)),
		at("peer", to(notePeer)),
		at("local", to(noteLocal)),
		asm.Instructions{
			// A client that had bound port 0 sends from 127.0.0.1.
			asm.JNE.Imm32(asm.R9, loopback, "pass").WithSymbol("not own"),
			asm.LoadMem(asm.R1, asm.R8, notePeerSet, asm.Word),
			asm.JEq.Imm(asm.R1, 0, "pass"),
			asm.LoadMem(asm.R1, asm.R8, notePeer+12, asm.Word),
			asm.JEq.Imm32(asm.R1, oneWord, "peer"),
		})
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
