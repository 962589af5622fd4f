package report

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"
)

// Peer is who sent a datagram, from the kernel.
type Peer struct {
	PID int32
	UID uint32
}

// Answerer tells whether a user id can be the answerer's: the range that systemd keeps for dynamic
// users (61184 to 65519), which the standalone supervisor's user is in too. No account has one.
func (p Peer) Answerer() bool { return p.UID >= 61184 && p.UID <= 65519 }

// Handler takes what arrives. Functions that are nil are not called.
type Handler struct {
	Admit    func(Peer) bool // nil: Peer.Answerer, or whom ListenFrom named
	Keeper   func(Peer) bool // who may send Repaired; nil: root
	Repaired func(Repaired)
	Refused  func(Refused)
	Lookup   func(Lookup)
	Counters func(Counters)
	Bad      func(Peer, error) // what cannot be read, or is from somebody else
}

// Receiver is the helper's end.
type Receiver struct {
	conn   *net.UnixConn
	path   string
	sender func(oob []byte) Peer // who sent, by what came along
	oob    int                   // octets of that at most; 0: the kernel drops it
	admit  func(Peer) bool       // unless the handler knows better
}

// ListenFrom makes the socket at path for a sender whose user is known: it is that user's, and nobody else
// can write to it but root. So reports are told apart where datagrams carry no credentials (macOS).
func ListenFrom(path string, uid int) (*Receiver, error) {
	conn, err := bind(path, func(_ *net.UnixConn, fresh string) error {
		return errors.Join(os.Chmod(fresh, 0o600), os.Chown(fresh, uid, -1))
	})
	if err != nil {
		return nil, err
	}
	p := Peer{PID: -1, UID: uint32(uid)}
	return &Receiver{conn: conn, path: path, sender: func([]byte) Peer { return p }, admit: func(Peer) bool { return true }}, nil
}

// bind makes a socket beside path, has it made ready, and puts it there. What was left by an earlier receiver
// is replaced; anything but a socket is an error.
func bind(path string, ready func(conn *net.UnixConn, fresh string) error) (*net.UnixConn, error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("listen %s: something that is no socket is in the way", path)
	}
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listen %s: %w", path, err)
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: fresh, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("listen %s: %w", path, err)
	}
	if err = ready(conn, fresh); err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("listen %s: %w", path, err)
	}
	return conn, nil
}

// Run gives the handler what arrives, until ctx ends, which is no error. Then the socket is closed
// and stays in the folder: a receiver that follows replaces it.
func (r *Receiver) Run(ctx context.Context, h Handler) error {
	defer r.conn.Close()
	stop := context.AfterFunc(ctx, func() { r.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if h.Admit == nil {
		h.Admit = r.admit
	}
	if h.Keeper == nil {
		h.Keeper = func(p Peer) bool { return p.UID == 0 }
	}
	buf, oob := make([]byte, MaxBytes+1), make([]byte, r.oob)
	for {
		n, oobn, _, _, err := r.conn.ReadMsgUnix(buf, oob)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", r.path, err)
		}
		h.take(r.sender(oob[:oobn]), buf[:n])
	}
}

func (h Handler) take(p Peer, datagram []byte) {
	if repaired, err := DecodeRepaired(datagram); err == nil && h.Keeper(p) {
		if h.Repaired != nil {
			h.Repaired(repaired)
		}
		return
	}
	if !h.Admit(p) {
		h.bad(p, fmt.Errorf("report from user %d: not the answerer", p.UID))
		return
	}
	if refused, err := DecodeRefused(datagram); err == nil {
		if h.Refused != nil {
			h.Refused(refused)
		}
		return
	}
	if lookup, err := DecodeLookup(datagram); err == nil {
		if h.Lookup != nil {
			h.Lookup(lookup)
		}
		return
	}
	counters, err := DecodeCounters(datagram)
	switch {
	case err != nil:
		h.bad(p, err)
	case h.Counters != nil:
		h.Counters(counters)
	}
}

func (h Handler) bad(p Peer, err error) {
	if h.Bad != nil {
		h.Bad(p, err)
	}
}
