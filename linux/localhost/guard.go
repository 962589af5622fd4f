package localhost

import "github.com/cilium/ebpf/asm"

// guard4 and guard6, at the root of the hierarchy, let nobody bind a leased address but the box that has it.
// An ordinary bind costs a few comparisons. The programs on boxes ran before.
func guard4(c Config) asm.Instructions {
	return join(
		asm.Instructions{
			asm.LoadMem(asm.R9, asm.R1, ctxIP4, asm.Word),
			asm.Mov.Reg(asm.R6, asm.R1),
		},
		ifLeased("leased"),
		guarded(c))
}

func guard6(c Config) asm.Instructions {
	return join(
		asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R1, asm.R6, ctxIP6+8, asm.Word),
			asm.JNE.Imm32(asm.R1, mappedWord, "pass"),
			asm.LoadMem(asm.R9, asm.R6, ctxIP6+12, asm.Word),
		},
		ifLeased("leased"),
		guarded(c))
}

// guarded: another network namespace has a 127.0.0.0/8 of its own.
func guarded(c Config) asm.Instructions {
	return join(pass(),
		asm.Instructions{
			asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("leased"),
			asm.FnGetNetnsCookie.Call(),
			asm.LoadImm(asm.R2, int64(c.NetnsCookie), asm.DWord),
			asm.JNE.Reg(asm.R0, asm.R2, "pass"),
			asm.StoreMem(asm.RFP, atOwn, asm.R9, asm.Word),
			mapPointer(mapOwners),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, atOwn),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "pass"),
			asm.LoadMem(asm.R7, asm.R0, 0, asm.DWord),
			asm.Mov.Imm(asm.R1, int32(c.Level)),
			asm.FnGetCurrentAncestorCgroupId.Call(),
			asm.JEq.Reg(asm.R0, asm.R7, "pass"),
			asm.Mov.Imm(asm.R0, 0),
			asm.Return(),
		})
}
