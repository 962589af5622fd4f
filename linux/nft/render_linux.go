package nft

import (
	"fmt"
	"strings"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// definition is what has to be equal for a chain of the kernel to be used as it is.
func (c Chain) definition() string {
	if c.Hook == nil {
		return "chain " + c.Name
	}
	return fmt.Sprintf("chain %s type %s hook %d priority %d", c.Name, c.Hook.Type, c.Hook.Num, c.Hook.Priority)
}

// Text renders a rule, one word group for each expression. It is for people, goldens and the
// comparison with the kernel; it is not nft's language.
func (r Rule) Text() string {
	parts := make([]string, 0, len(r))
	for _, e := range r {
		parts = append(parts, renderExpr(e))
	}
	return strings.Join(parts, "; ")
}

// reg names a 32-bit register. The kernel lists a register that begins one of the four 128-bit ones
// under that one's number.
func reg(n uint32) string {
	if n >= unix.NFT_REG_1 && n <= unix.NFT_REG_4 {
		n = unix.NFT_REG32_00 + (n-unix.NFT_REG_1)*4
	}
	return fmt.Sprintf("r%d", n-unix.NFT_REG32_00)
}

func renderExpr(e expr.Any) string {
	switch e := e.(type) {
	case *expr.Socket:
		if e.Key == expr.SocketKeyCgroupv2 {
			return fmt.Sprintf("%s = socket cgroup level %d", reg(e.Register), e.Level)
		}
		return fmt.Sprintf("%s = socket %s", reg(e.Register), map[expr.SocketKey]string{
			expr.SocketKeyMark: "mark", expr.SocketKeyTransparent: "transparent"}[e.Key])
	case *expr.Cmp:
		return fmt.Sprintf("%s %s 0x%x", reg(e.Register), map[expr.CmpOp]string{expr.CmpOpEq: "==", expr.CmpOpNeq: "!=", expr.CmpOpGte: ">="}[e.Op], e.Data)
	case *expr.Bitwise:
		return fmt.Sprintf("%s = %s & 0x%x ^ 0x%x", reg(e.DestRegister), reg(e.SourceRegister), e.Mask, e.Xor)
	case *expr.Lookup:
		return renderLookup(e)
	case *expr.Meta:
		if e.SourceRegister {
			return fmt.Sprintf("meta %s = %s", metaName(e.Key), reg(e.Register))
		}
		return fmt.Sprintf("%s = meta %s", reg(e.Register), metaName(e.Key))
	case *expr.Ct:
		return renderCt(e)
	case *expr.Payload:
		return fmt.Sprintf("%s = %s header %d+%d", reg(e.DestRegister),
			map[expr.PayloadBase]string{expr.PayloadBaseNetworkHeader: "network", expr.PayloadBaseTransportHeader: "transport"}[e.Base], e.Offset, e.Len)
	case *expr.Fib:
		return fmt.Sprintf("%s = fib daddr %t type %t", reg(e.Register), e.FlagDADDR, e.ResultADDRTYPE)
	case *expr.Exthdr:
		return fmt.Sprintf("%s = exthdr %d flags %d op %d", reg(e.DestRegister), e.Type, e.Flags, e.Op)
	case *expr.Immediate:
		return fmt.Sprintf("%s = 0x%x", reg(e.Register), e.Data)
	case *expr.Dynset:
		return fmt.Sprintf("dynset %d @%s %s {%s}", e.Operation, e.SetName, reg(e.SrcRegKey), Rule(e.Exprs).Text())
	default:
		return renderEnd(e)
	}
}

// renderEnd renders what ends a rule or counts.
func renderEnd(e expr.Any) string {
	switch e := e.(type) {
	case *expr.Verdict:
		name := map[expr.VerdictKind]string{expr.VerdictAccept: "accept", expr.VerdictDrop: "drop",
			expr.VerdictGoto: "goto", expr.VerdictJump: "jump", expr.VerdictReturn: "return"}[e.Kind]
		return strings.TrimSpace(name + " " + e.Chain)
	case *expr.Reject:
		if e.Type == unix.NFT_REJECT_TCP_RST {
			return "reject tcp reset"
		}
		return fmt.Sprintf("reject type %d code %d", e.Type, e.Code)
	case *expr.NAT:
		return fmt.Sprintf("nat type %d family %d %s-%s", e.Type, e.Family, reg(e.RegAddrMin), reg(e.RegAddrMax))
	case *expr.Redir:
		return fmt.Sprintf("redirect to %s-%s flags %d", reg(e.RegisterProtoMin), reg(e.RegisterProtoMax), e.Flags)
	case *expr.Log:
		return fmt.Sprintf("log group %d snaplen %d prefix %q", e.Group, e.Snaplen, e.Data)
	case *expr.Counter:
		return "counter"
	case *expr.Limit:
		return fmt.Sprintf("limit %d/%d burst %d over %t type %d", e.Rate, e.Unit, e.Burst, e.Over, e.Type)
	case *expr.Connlimit:
		return fmt.Sprintf("ct count %d flags %d", e.Count, e.Flags)
	case *opaque:
		return "unknown " + e.name
	}
	return fmt.Sprintf("unknown %T", e)
}

func renderLookup(e *expr.Lookup) string {
	s := fmt.Sprintf("%s @%s", reg(e.SourceRegister), e.SetName)
	if e.IsDestRegSet {
		s = fmt.Sprintf("%s = %s", reg(e.DestRegister), s)
	}
	if e.Invert {
		s = "not " + s
	}
	return s
}

func renderCt(e *expr.Ct) string {
	name := map[expr.CtKey]string{expr.CtKeySTATE: "state", expr.CtKeyDIRECTION: "direction", expr.CtKeyMARK: "mark", expr.CtKeySTATUS: "status",
		expr.CtKeyPROTODST: "proto-dst", unix.NFT_CT_DST_IP: "ip daddr", unix.NFT_CT_DST_IP6: "ip6 daddr"}[e.Key]
	if name == "" {
		name = fmt.Sprintf("key %d", e.Key)
	}
	if e.SourceRegister {
		return fmt.Sprintf("ct %s = %s", name, reg(e.Register))
	}
	if ctDirected(e.Key) {
		name = fmt.Sprintf("direction %d %s", e.Direction, name)
	}
	return fmt.Sprintf("%s = ct %s", reg(e.Register), name)
}

func metaName(k expr.MetaKey) string {
	name := map[expr.MetaKey]string{expr.MetaKeyMARK: "mark", expr.MetaKeyIIF: "iif", expr.MetaKeyOIF: "oif",
		expr.MetaKeyNFPROTO: "nfproto", expr.MetaKeyL4PROTO: "l4proto", expr.MetaKeyPRIORITY: "priority"}[k]
	if name == "" {
		name = fmt.Sprintf("key %d", k)
	}
	return name
}
