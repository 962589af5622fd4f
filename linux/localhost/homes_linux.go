package localhost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/gominimal/minhost/installer/lease"
)

// Homes fills the maps of the attached programs. Its methods may be called at once for different boxes.
type Homes struct{ maps maps }

// Homes opens the maps that the attached programs hold. The caller closes it; the maps live on.
func (s *Set) Homes() (*Homes, error) {
	m, err := s.maps(false)
	if err != nil {
		return nil, err
	}
	return &Homes{m}, nil
}

// Close lets go of the maps.
func (h *Homes) Close() { h.maps.close() }

// Put makes the programs know this home, in the place of an older one of the same leaf with the same
// address. The address is guarded first.
func (h *Homes) Put(w lease.Home) error {
	value, err := encode(w)
	if err != nil {
		return err
	}
	if err := h.maps[mapOwners].Put(w.Address.As4(), w.Leaf); err != nil {
		return fmt.Errorf("localhost: guard %s: %w", w.Address, err)
	}
	if err := h.ports(w); err != nil {
		return err
	}
	if err := h.maps[mapHomes].Put(w.Leaf, value); err != nil {
		return fmt.Errorf("localhost: home of %d: %w", w.Leaf, err)
	}
	return nil
}

// ports makes the map of ports hold exactly those of the home: new ones first.
func (h *Homes) ports(w lease.Home) error {
	m := h.maps[mapPorts]
	for _, p := range w.OpenPorts {
		if err := m.Put(portKey(w.Leaf, p), uint32(1)); err != nil {
			return fmt.Errorf("localhost: port %d: %w", p, err)
		}
	}
	var old [8]byte
	if err := h.maps[mapHomes].Lookup(w.Leaf, &old); errors.Is(err, ebpf.ErrKeyNotExist) || err == nil && flagsOf(old)&flagOpenPorts == 0 {
		return nil // none had been put
	}
	return h.drop(mapPorts, func(leaf uint64, port uint16) bool { return leaf == w.Leaf && !slices.Contains(w.OpenPorts, port) })
}

// Delete makes the programs forget a home. No error when they do not know it.
func (h *Homes) Delete(w lease.Home) error {
	var value [8]byte
	err := h.maps[mapHomes].Lookup(w.Leaf, &value)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		err = nil
	} else if err == nil && flagsOf(value)&flagOpenPorts != 0 {
		err = h.drop(mapPorts, func(leaf uint64, _ uint16) bool { return leaf == w.Leaf })
	}
	sixes := h.drop(mapSixes, func(leaf uint64, _ uint16) bool { return leaf == w.Leaf })
	return errors.Join(err, gone(h.maps[mapHomes].Delete(w.Leaf)), h.release(w), sixes)
}

// nobody is the root of the hierarchy, which is no leaf: an address that is reserved is nobody's yet.
const nobody = 1

// Reserve guards an address whose leaf is not made yet. What is bound to it before can be looked for behind.
func (h *Homes) Reserve(a netip.Addr) error {
	if err := h.maps[mapOwners].Put(a.As4(), uint64(nobody)); err != nil {
		return fmt.Errorf("localhost: guard %s: %w", a, err)
	}
	return nil
}

// release ends the guard of an address, unless it is another leaf's by now.
func (h *Homes) release(w lease.Home) error {
	var leaf uint64
	err := h.maps[mapOwners].Lookup(w.Address.As4(), &leaf)
	if err != nil || leaf != w.Leaf && leaf != nobody {
		return gone(err)
	}
	return gone(h.maps[mapOwners].Delete(w.Address.As4()))
}

// Sync makes the maps hold exactly these homes. Those that stay are never missing in between.
func (h *Homes) Sync(all []lease.Home) error {
	keep := map[uint64]lease.Home{}
	var errs []error
	for _, w := range all {
		keep[w.Leaf] = w
		errs = append(errs, h.Put(w))
	}
	for _, w := range h.List() {
		if k, ok := keep[w.Leaf]; !ok || k.Address != w.Address {
			errs = append(errs, h.release(w))
		}
		if _, ok := keep[w.Leaf]; !ok {
			errs = append(errs, gone(h.maps[mapHomes].Delete(w.Leaf)))
		}
	}
	errs = append(errs,
		h.drop(mapPorts, func(leaf uint64, port uint16) bool { return !slices.Contains(keep[leaf].OpenPorts, port) }),
		h.drop(mapSixes, func(leaf uint64, _ uint16) bool { return keep[leaf].Leaf == 0 }))
	return errors.Join(errs...)
}

// List returns the leaves and addresses that the programs know, for Sync and for checks: those with a home,
// and those with a guard only.
func (h *Homes) List() []lease.Home {
	type place struct {
		leaf    uint64
		address netip.Addr
	}
	seen := map[place]bool{}
	var leaf uint64
	var value [8]byte
	var address [4]byte
	var out []lease.Home
	add := func(h lease.Home) {
		k := place{h.Leaf, h.Address}
		if !seen[k] {
			out = append(out, h)
		}
		seen[k] = true
	}
	for it := h.maps[mapHomes].Iterate(); it.Next(&leaf, &value); {
		f := flagsOf(value)
		add(lease.Home{Leaf: leaf, Address: netip.AddrFrom4([4]byte(value[:4])), Own: f&flagOwn != 0, UDPWildcards: f&flagUDPWild != 0, Open: f&flagOpenAll != 0})
	}
	for it := h.maps[mapOwners].Iterate(); it.Next(&address, &leaf); {
		add(lease.Home{Leaf: leaf, Address: netip.AddrFrom4(address)})
	}
	return out
}

// drop deletes keys of a map by leaf and port for which doom is true.
func (h *Homes) drop(name string, doom func(leaf uint64, port uint16) bool) error {
	var key [16]byte
	var value uint32
	var doomed [][16]byte
	for it := h.maps[name].Iterate(); it.Next(&key, &value); {
		if doom(binary.NativeEndian.Uint64(key[:]), binary.BigEndian.Uint16(key[8:])) {
			doomed = append(doomed, key)
		}
	}
	var errs []error
	for _, k := range doomed {
		errs = append(errs, gone(h.maps[name].Delete(k)))
	}
	return errors.Join(errs...)
}

// gone takes a missing key for done.
func gone(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}
