package nft

import (
	"encoding/binary"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// content is what a register may have: ones that the rule itself put there, and bits of the packet's mark or of the
// connection's.
type content struct{ own, packet, connection uint32 }

// effectOf follows a rule's registers to the marks that it writes.
func effectOf(list []byte) (e effect, err error) {
	registers := map[uint32]content{}
	err = attributes(list, func(_ uint16, v []byte) error {
		name, data, err := nameAndData(v)
		switch {
		case err != nil:
		case name == "target":
			e.join(targetEffect(data))
		default:
			e.join(follow(registers, decode(name, data)))
		}
		return err
	})
	return e, err
}

func (e *effect) join(o effect) {
	e.set |= o.set
	e.copy |= o.copy
}

func follow(registers map[uint32]content, x expr.Any) (e effect) {
	const all = ^uint32(0)
	switch x := x.(type) {
	case *expr.Immediate:
		if len(x.Data) == 4 {
			registers[x.Register] = content{own: binary.NativeEndian.Uint32(x.Data)}
		}
	case *expr.Bitwise:
		if len(x.Xor) == 4 && len(x.Mask) == 4 {
			from, mask := registers[x.SourceRegister], binary.NativeEndian.Uint32(x.Mask)
			registers[x.DestRegister] = content{from.own&mask ^ binary.NativeEndian.Uint32(x.Xor), from.packet & mask, from.connection & mask}
		}
	case *expr.Meta:
		switch {
		case x.SourceRegister && x.Key == expr.MetaKeyMARK:
			return effect{set: registers[x.Register].own, copy: registers[x.Register].connection}
		case !x.SourceRegister && x.Key == expr.MetaKeyMARK:
			registers[x.Register] = content{packet: all}
		case !x.SourceRegister:
			delete(registers, x.Register)
		}
	case *expr.Ct:
		switch {
		case x.SourceRegister && x.Key == expr.CtKeyMARK:
			return effect{set: registers[x.Register].own, copy: registers[x.Register].packet}
		case !x.SourceRegister && x.Key == expr.CtKeyMARK:
			registers[x.Register] = content{connection: all}
		case !x.SourceRegister:
			delete(registers, x.Register)
		}
	}
	return e
}

// targetEffect reads a target of iptables-nft.
func targetEffect(data []byte) effect {
	var name string
	var info []byte
	var revision uint32
	_ = attributes(data, func(t uint16, v []byte) error {
		switch t {
		case unix.NFTA_TARGET_NAME:
			name = cstring(v)
		case unix.NFTA_TARGET_REV:
			revision = num(v)
		case unix.NFTA_TARGET_INFO:
			info = v
		}
		return nil
	})
	return xtEffect(name, byte(revision), info)
}

// Modes of CONNMARK (linux/netfilter/xt_connmark.h).
const (
	connmarkSet = iota
	connmarkSave
	connmarkRestore
)

// xtEffect reads MARK, revision 2 (value, mask), and CONNMARK, revisions 1 and 2 (value, its mask, mask of packets'
// marks; the mode stands behind the shift of revision 2). Other revisions are gone since Linux 2.6.37.
func xtEffect(name string, revision byte, info []byte) effect {
	word := func(i int) uint32 { return binary.NativeEndian.Uint32(info[4*i:]) }
	switch {
	case name == "MARK" && len(info) >= 8:
		return effect{set: word(0)}
	case name == "CONNMARK" && len(info) >= 16:
		mode := info[12]
		shifted := false
		if revision >= 2 {
			mode, shifted = info[14], info[13] != 0
		}
		copied := map[byte]uint32{connmarkSave: word(2), connmarkRestore: word(1)}[mode]
		if shifted && copied != 0 {
			copied = ^uint32(0) // where they go is not followed
		}
		if mode == connmarkSet {
			return effect{set: word(0)}
		}
		return effect{copy: copied}
	}
	return effect{}
}
