package helper

import (
	"net/netip"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// numberTries is how many lease numbers are tried whose address somebody uses.
const numberTries = 16

// assign gives a box its number, and the address that it is to have: one that no other box holds and that is not among
// those found to be in use. A box with its own localhost and no name has an address by its number; where none of
// several can be used it shares the host's. h.mu is held.
func (h *Helper) assign(b *box, used map[netip.Addr]error) error {
	if b.Name != "" {
		a, err := lease.Pick(h.heldByOthers(b), h.released, func(a netip.Addr) error { return used[a] })
		if err != nil {
			return &api.NoAddress{Message: err.Error(), Next: "minhost ls; end a box, or plan one without a name"}
		}
		b.Address = a
		if b.Number != 0 {
			return nil
		}
	}
	n, ok := h.number()
	if !ok {
		return &api.QuotaExceeded{Limit: 65535, Message: "every lease number is taken", Next: nextLs}
	}
	delete(h.numbers, b.Number)
	b.Number, h.numbers[n] = n, b
	if b.Name == "" && b.OwnLocalhost {
		b.Address = lease.Unpublished(n)
		if len(used) == numberTries {
			b.Address, b.OwnLocalhost = netip.Addr{}, false
		}
	}
	return nil
}

// house asks the kernel whether the address of a box can be used, which guards it, and gives the box another one until
// it can. It does so without the lock: the kernel walks all sockets for an answer. Number and address may change
// here, for nobody finds the box before it has its leaf.
func (h *Helper) house(b *box) error {
	used := map[netip.Addr]error{}
	for b.Address.IsValid() {
		cause := h.cfg.Range.Free(b.Address)
		if cause == nil {
			return nil
		}
		used[b.Address] = cause
		h.mu.Lock()
		err := h.assign(b, used)
		h.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// heldByOthers are the addresses of all other boxes. h.mu is held.
func (h *Helper) heldByOthers(b *box) map[netip.Addr]bool {
	held := map[netip.Addr]bool{}
	for _, other := range h.boxes {
		if other != b && other.Address.IsValid() {
			held[other.Address] = true
		}
	}
	return held
}

// number gives the next lease number that nobody holds; numbers are reused as late as possible,
// since a mark in flight may still carry an old one. h.mu is held.
func (h *Helper) number() (uint16, bool) {
	for range 65535 {
		h.lastNum++
		if h.lastNum == 0 {
			h.lastNum = 1
		}
		if h.numbers[h.lastNum] == nil {
			return h.lastNum, true
		}
	}
	return 0, false
}
