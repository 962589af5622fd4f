package helper

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// listen hands out a socket on the address of an attached box, made inside its leaf: it has the verdict of
// the box for ever. Boxes of every mode have theirs in the host's network, where their address is.
func (h *Helper) listen(ctx context.Context, c request, in api.ListenIn) (api.ListenOut, error) {
	b, err := h.use(c, in.Lease, in.Secret)
	if err != nil {
		return api.ListenOut{}, err
	}
	switch {
	case h.cfg.Sockets == nil:
		return api.ListenOut{}, &api.NotSupported{Message: "this helper makes no sockets", Next: "bind the box's own address in the box"}
	case in.Protocol != api.ProtocolTCP && in.Protocol != api.ProtocolUDP:
		return api.ListenOut{}, invalid("protocol", fmt.Errorf("%s has no ports; use tcp or udp", in.Protocol))
	case in.Port < 0 || in.Port > 65535:
		return api.ListenOut{}, invalid("port", fmt.Errorf("%d is not a number from 0 to 65535", in.Port))
	case !b.Address.IsValid():
		return api.ListenOut{}, &api.CannotListen{Port: in.Port, Message: fmt.Sprintf("lease %s has no address", b.ID), Next: "plan the box with a name: it gets an address"}
	}
	free, err := h.child(ctx, b.UID)
	if err != nil {
		return api.ListenOut{}, err
	}
	defer free()
	f, at, err := h.cfg.Sockets.Listen(ctx, b.leaf, b.UID, lease.Protocol(in.Protocol), netip.AddrPortFrom(b.Address, uint16(in.Port)))
	if err != nil {
		return api.ListenOut{}, cannotListen(b, in, err)
	}
	c.send(f)
	// The box may have ended meanwhile, and its address with it.
	if _, err := h.use(c, in.Lease, in.Secret); err != nil {
		return api.ListenOut{}, err
	}
	h.log.Info("listening", "lease", b.ID, "box", b.Name, "protocol", in.Protocol, "at", at)
	return api.ListenOut{Address: at.Addr().String(), Port: int(at.Port())}, nil
}

// child waits for a place among the processes of an account that make something elsewhere: nobody fills the
// host with them, and who holds his up (he can stop them in his leaf) waits for himself alone.
func (h *Helper) child(ctx context.Context, uid uint32) (free func(), err error) {
	h.mu.Lock()
	places := h.children[uid]
	if places == nil {
		places = make(chan struct{}, maxChildren)
		h.children[uid] = places
	}
	h.mu.Unlock()
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// cannotListen names the reason where it is the kernel's word about the port.
func cannotListen(b *box, in api.ListenIn, err error) error {
	e := &api.CannotListen{Port: in.Port}
	at := netip.AddrPortFrom(b.Address, uint16(in.Port))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		e.Message, e.Next = fmt.Sprintf("%s port %s is taken", in.Protocol, at), "use another port, or port 0"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		e.Message, e.Next = fmt.Sprintf("%s is not an address of this host now", b.Address), "minhost verify"
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		e.Message, e.Next = fmt.Sprintf("the host forbids %s port %s: %v", in.Protocol, at, err), "use a port from 1024 on"
	case errors.Is(err, syscall.ENODEV), errors.Is(err, syscall.ENOENT): // of the directory that the child is born in
		return leafGone(b)
	default:
		return internal("listen", err)
	}
	return e
}
