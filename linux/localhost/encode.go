package localhost

import (
	"encoding/binary"
	"fmt"

	"github.com/gominimal/minhost/installer/lease"
)

// encode returns a home as the map has it: the address in network order, then the flags.
func encode(w lease.Home) (value [8]byte, err error) {
	if w.Leaf == 0 || !w.Address.Is4() || !w.Address.IsLoopback() {
		return value, fmt.Errorf("localhost: leaf %d, address %s: no home", w.Leaf, w.Address)
	}
	four := w.Address.As4()
	copy(value[:], four[:])
	binary.NativeEndian.PutUint32(value[4:], flags(w))
	return value, nil
}

func flags(w lease.Home) uint32 {
	var f uint32
	for _, x := range []struct {
		set  bool
		flag uint32
	}{{w.Own, flagOwn}, {w.UDPWildcards, flagUDPWild}, {w.Open, flagOpenAll}, {len(w.OpenPorts) > 0, flagOpenPorts}} {
		if x.set {
			f |= x.flag
		}
	}
	return f
}

func flagsOf(value [8]byte) uint32 { return binary.NativeEndian.Uint32(value[4:]) }

// portKey has the port in network order, as calls have it.
func portKey(leaf uint64, port uint16) [16]byte {
	var k [16]byte
	binary.NativeEndian.PutUint64(k[:], leaf)
	binary.BigEndian.PutUint16(k[8:], port)
	return k
}
