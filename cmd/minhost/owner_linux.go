package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/linux/nft"
)

// Names of sockets that the service manager hands over: one that a helper made and had it keep, and one of its own
// (minhost-table.socket), which it has whatever becomes of helpers.
const (
	ownerName = "minhost-table"
	unitName  = "table"
)

// tableOwner is the socket that the table belongs to where there is no belt.
type tableOwner struct {
	socket *os.File
	lasts  bool // it is the service manager's own
}

// take takes what the service manager handed over, if it is such a socket. One that a helper made is what a table
// belongs to by now: an owner is given once.
func (o *tableOwner) take(f *os.File) bool {
	switch {
	case f.Name() == ownerName:
		o.close()
		o.socket, o.lasts = f, false
	case f.Name() == unitName && o.socket == nil:
		o.socket, o.lasts = f, true
	case f.Name() == unitName:
		f.Close()
	default:
		return false
	}
	return true
}

// get returns the socket that was handed over, or a new one that the service manager keeps from now on. Where
// it keeps none the table ends, or is nobody's, with the helper.
func (o *tableOwner) get() (*os.File, error) {
	if o.socket != nil {
		return o.socket, nil
	}
	f, err := nft.OwnerSocket()
	if err != nil {
		return nil, err
	}
	o.socket = f
	if err := keep(ownerName, f); err != nil {
		return nil, fmt.Errorf("have the table's owner kept: %w", err)
	}
	return f, nil
}

func (o *tableOwner) close() {
	if o.socket != nil {
		o.socket.Close()
	}
}

// keep hands a descriptor to the service manager (FDSTORE of sd_notify(3)), whatever errors it shows: FDPOLL=0.
func keep(name string, f *os.File) error {
	at := os.Getenv("NOTIFY_SOCKET")
	if at == "" {
		return nil
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Control(func(kept uintptr) {
		sent = unix.Sendmsg(fd, []byte("FDSTORE=1\nFDPOLL=0\nFDNAME="+name), unix.UnixRights(int(kept)), &unix.SockaddrUnix{Name: at}, 0)
	})
	return errors.Join(err, sent)
}

// owned names the protection of a host without the belt, and what that leaves open.
func (c groundChecker) owned(ctx context.Context, check api.Check, lacks error) api.Check {
	tree, err := c.ground.Tree()
	if err != nil {
		check.Detail = api.Text(err.Error())
		return check
	}
	defer tree.Close()
	table, err := c.ground.TableOf(tree)
	if err != nil {
		check.Detail = api.Text(err.Error())
		return check
	}
	defer table.Close()
	owned, persists, err := table.Owned(ctx)
	switch {
	case err != nil:
		check.Detail = api.Text(err.Error())
	case !owned:
		check.Detail = api.Text(lacks.Error() + "; and the table has no owner")
	default:
		check.State = api.CheckStateWarning
		whose := "the helper's socket, which the service manager keeps"
		if c.owner.lasts {
			whose = "a socket of the service manager's own"
		}
		check.Detail = api.Text("the table belongs to " + whose + ": nobody else flushes it (" + lacks.Error() + ")")
		check.Loses = c.owner.loses(persists)
		check.Loses, check.Next = check.Loses+"; packets to half-open connections of a box are not judged", "a kernel with CONFIG_CGROUP_BPF"
	}
	return check
}

// loses says when boxes are open although the table has an owner.
func (o *tableOwner) loses(persists bool) string {
	text, lost := "", "the service manager loses the table's socket, as when minhost-table.socket fails"
	if !o.lasts {
		text = "a process in boxes is open before the helper starts; "
		lost = "helper and service manager both lose the table's socket, as when the helper's unit is stopped"
	}
	if persists {
		return text + "when " + lost + ", a flush opens boxes"
	}
	return text + "boxes are open when " + lost
}
