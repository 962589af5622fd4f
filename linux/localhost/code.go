package localhost

import "github.com/cilium/ebpf/asm"

// What the programs have in common. Registers: R6 the context, R7 the box's own address, R8 its flags or
// its note, R9 the address asked about. Where there are no such, label "pass" ends with 1.

// Places on the stack.
const (
	atLeaf  = -8  // leaf id
	atPort  = -24 // key of the map of ports: leaf id, port, 0
	atTuple = -64 // struct bpf_sock_tuple, 36 octets
	atAddr  = -96 // struct sockaddr_in or sockaddr_in6, 28 octets
	atPure  = -100
	atOwn   = -104
)

func pass() asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R0, 1).WithSymbol("pass"), asm.Return()}
}

func deny() asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R0, 0).WithSymbol("deny"), asm.Return()}
}

// home finds the caller's leaf and jumps to pass unless the socket is of the host's network namespace and the
// leaf has a home. A process in a cgroup below the leaf counts as the leaf's.
func home(c Config) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.FnGetNetnsCookie.Call(),
		asm.LoadImm(asm.R2, int64(c.NetnsCookie), asm.DWord),
		asm.JNE.Reg(asm.R0, asm.R2, "pass"),
		asm.Mov.Imm(asm.R1, int32(c.Level)),
		asm.FnGetCurrentAncestorCgroupId.Call(),
		asm.StoreMem(asm.RFP, atLeaf, asm.R0, asm.DWord),
		mapPointer(mapHomes),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, atLeaf),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "pass"),
		asm.LoadMem(asm.R7, asm.R0, 0, asm.Word),
		asm.LoadMem(asm.R8, asm.R0, 4, asm.Word),
	}
}

// mapPointer loads a map into R1, as calls want it.
func mapPointer(name string) asm.Instruction {
	return asm.LoadMapPtr(asm.R1, 0).WithReference(name)
}

// unless jumps when a flag of R8 is not set.
func unless(flag int32, label string) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R8),
		asm.And.Imm(asm.R1, flag),
		asm.JEq.Imm(asm.R1, 0, label),
	}
}

// unlessLoopback jumps when R9 is not of 127.0.0.0/8.
func unlessLoopback(label string) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R9),
		asm.And.Imm32(asm.R1, word(255, 0, 0, 0)),
		asm.JNE.Imm(asm.R1, word(127, 0, 0, 0), label),
	}
}

// ifLeased jumps when R9 is an address that boxes get: 127.0.64.0/24 or 127.65.0.0/16.
func ifLeased(label string) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R9),
		asm.And.Imm32(asm.R1, word(255, 255, 255, 0)),
		asm.JEq.Imm(asm.R1, word(127, 0, 64, 0), label),
		asm.And.Imm32(asm.R1, word(255, 255, 0, 0)),
		asm.JEq.Imm(asm.R1, word(127, 65, 0, 0), label),
	}
}

// classify loads the address of an IPv6 socket's call into R9 as the IPv4 address that stands for it: the
// mapped one, 0 for ::, 127.0.0.1 for ::1. Others jump to pass. At atPure stays 1 for :: and ::1.
func classify() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R6, ctxIP6, asm.Word),
		asm.JNE.Imm(asm.R1, 0, "pass"),
		asm.LoadMem(asm.R1, asm.R6, ctxIP6+4, asm.Word),
		asm.JNE.Imm(asm.R1, 0, "pass"),
		asm.LoadMem(asm.R9, asm.R6, ctxIP6+12, asm.Word),
		asm.StoreImm(asm.RFP, atPure, 0, asm.Word),
		asm.LoadMem(asm.R1, asm.R6, ctxIP6+8, asm.Word),
		asm.JEq.Imm32(asm.R1, mappedWord, "classified"),
		asm.JNE.Imm(asm.R1, 0, "pass"),
		asm.StoreImm(asm.RFP, atPure, 1, asm.Word),
		asm.JEq.Imm(asm.R9, 0, "classified"),
		asm.JNE.Imm32(asm.R9, oneWord, "pass"),
		asm.Mov.Imm32(asm.R9, loopback),
		asm.Mov.Reg(asm.R1, asm.R9).WithSymbol("classified"),
	}
}

// sixOnly jumps when the calling IPv6 socket takes no IPv4. Programs are not shown that: it is read from
// the socket itself.
func sixOnly(label string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R6, ctxSocket, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, "not six only"),
		asm.FnSkcToTcp6Sock.Call(),
		asm.JNE.Imm(asm.R0, 0, "read six only"),
		asm.LoadMem(asm.R1, asm.R6, ctxSocket, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, "not six only"),
		asm.FnSkcToUdp6Sock.Call(),
		asm.JEq.Imm(asm.R0, 0, "not six only"),
		asm.LoadMem(asm.R1, asm.R0, commonFlags, asm.Byte).WithSymbol("read six only"),
		asm.And.Imm(asm.R1, sixOnlyBit),
		asm.JNE.Imm(asm.R1, 0, label),
		asm.Mov.Imm(asm.R1, 0).WithSymbol("not six only"),
	}
}

// note leaves the calling socket's note in R8, made when it is not there and create is 1; where there is
// none it jumps.
func note(create int32, label string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R2, asm.R6, ctxSocket, asm.DWord),
		asm.JEq.Imm(asm.R2, 0, label),
		mapPointer(mapNotes),
		asm.Mov.Imm(asm.R3, 0),
		asm.Mov.Imm(asm.R4, create),
		asm.FnSkStorageGet.Call(),
		asm.JEq.Imm(asm.R0, 0, label),
		asm.Mov.Reg(asm.R8, asm.R0),
	}
}

// jump is one that ends nothing: it keeps the parts of programs in one line.
func jump(label string) asm.Instructions { return asm.Instructions{asm.Ja.Label(label)} }

// at begins a labelled part.
func at(label string, is asm.Instructions) asm.Instructions {
	is[0] = is[0].WithSymbol(label)
	return is
}

func join(parts ...asm.Instructions) asm.Instructions {
	var out asm.Instructions
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}
