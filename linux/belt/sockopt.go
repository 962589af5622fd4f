package belt

import "github.com/cilium/ebpf/asm"

// refusedOptions are the socket options that a box may not set, by level. Numbers of linux/in.h,
// linux/in6.h and asm-generic/socket.h (not those of MIPS, SPARC, PA-RISC and Alpha).
var refusedOptions = []struct {
	level   int32
	label   string
	options []int32
}{
	// A join makes the kernel itself send IGMP or MLD reports, with addresses that the box chose. The
	// IPPROTO_IP ones work on IPv6 sockets too.
	{0, "ip", []int32{
		35, // IP_ADD_MEMBERSHIP
		37, // IP_UNBLOCK_SOURCE
		39, // IP_ADD_SOURCE_MEMBERSHIP
		41, // IP_MSFILTER
		42, // MCAST_JOIN_GROUP
		43, // MCAST_BLOCK_SOURCE
		46, // MCAST_JOIN_SOURCE_GROUP
		48, // MCAST_MSFILTER
	}},
	{41, "ipv6", []int32{
		20, // IPV6_JOIN_GROUP
		27, // IPV6_JOIN_ANYCAST
		42, // MCAST_JOIN_GROUP
		43, // MCAST_BLOCK_SOURCE
		46, // MCAST_JOIN_SOURCE_GROUP
		48, // MCAST_MSFILTER
	}},
	// A selector in the SO_REUSEPORT group of a service of the same user takes that service's packets.
	{1, "socket", []int32{
		51, // SO_ATTACH_REUSEPORT_CBPF
		52, // SO_ATTACH_REUSEPORT_EBPF
	}},
}

// setsockopt answers EPERM to the options above.
func setsockopt(c Config) asm.Instructions {
	out := append(inNamespace(c, c.EveryOption),
		asm.LoadMem(asm.R2, asm.R6, optLevel, asm.Word),
		asm.LoadMem(asm.R3, asm.R6, optName, asm.Word),
	)
	out = append(out, refuseMark(c)...)
	for _, l := range refusedOptions {
		out = append(out, asm.JEq.Imm(asm.R2, l.level, l.label))
	}
	out = append(out, asm.Ja.Label("pass"))
	for _, l := range refusedOptions {
		for i, o := range l.options {
			ins := asm.JEq.Imm(asm.R3, o, "drop")
			if i == 0 {
				ins = ins.WithSymbol(l.label)
			}
			out = append(out, ins)
		}
		out = append(out, asm.Ja.Label("pass"))
	}
	return append(out,
		// Length 0 tells the kernel to take the value from the caller, not the copy made for us, which
		// ends after one page: kernels before 6.5 answer EFAULT to longer values otherwise.
		asm.Mov.Imm(asm.R0, 0).WithSymbol("pass"),
		asm.StoreMem(asm.R6, optLength, asm.R0, asm.Word),
		asm.Mov.Imm(asm.R0, 1).WithSymbol("as seen"),
		asm.Return(),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("drop"),
		asm.Return(),
	)
}

// refuseMark drops a SO_MARK with one of our bits. It takes CAP_NET_RAW in the host's namespace (CAP_NET_ADMIN
// before 5.17), which is enough that a program in a box has the first by its file: ping -m, as Debian installs
// it, could approve its own packets while the ruleset is flushed. Any other mark is set as it was
// seen here: were the kernel told to read it again, another thread could change it in between. Anything else
// goes on, with R2 and R3 as they were.
func refuseMark(c Config) asm.Instructions {
	return asm.Instructions{
		asm.JNE.Imm(asm.R2, solSocket, "no mark"),
		asm.JNE.Imm(asm.R3, soMark, "no mark"),
		asm.LoadMem(asm.R1, asm.R6, optValue, asm.DWord),
		asm.LoadMem(asm.R4, asm.R6, optEnd, asm.DWord),
		asm.Mov.Reg(asm.R5, asm.R1),
		asm.Add.Imm(asm.R5, 4),
		asm.JGT.Reg(asm.R5, asm.R4, "as seen"), // too short: the kernel refuses it
		asm.LoadMem(asm.R1, asm.R1, 0, asm.Word),
		asm.And.Imm(asm.R1, int32(c.bits())),
		asm.JNE.Imm(asm.R1, 0, "drop"),
		asm.Ja.Label("as seen"),
		asm.Mov.Imm(asm.R1, 0).WithSymbol("no mark"),
	}
}
