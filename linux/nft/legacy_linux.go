package nft

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// family of the older iptables: where its tables are named, and how long an entry is before its target
// (struct ipt_entry, struct ip6t_entry).
type legacyFamily struct {
	program string
	names   string
	domain  int
	level   int
	// Offsets in an entry of its two sizes: where the target begins, where the next entry does.
	target, next int
}

var legacyFamilies = []legacyFamily{
	{"iptables-legacy", "/proc/thread-self/net/ip_tables_names", unix.AF_INET, unix.IPPROTO_IP, 88, 90},
	{"ip6tables-legacy", "/proc/thread-self/net/ip6_tables_names", unix.AF_INET6, unix.IPPROTO_IPV6, 140, 142},
}

// Numbers of linux/netfilter_ipv4/ip_tables.h, the same for IPv6.
const (
	legacyGetInfo    = 64
	legacyGetEntries = 65
	legacyNameLen    = 32
	legacyInfoLen    = 84
	legacyHeaderLen  = 40 // struct ipt_get_entries before its entries
)

// legacyClashes asks only for tables that are there: to ask for another one would make it.
func legacyClashes(ours uint32) (out []string, err error) {
	for _, f := range legacyFamilies {
		names, err := os.ReadFile(f.names)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without it, or nobody has used it yet
		}
		if err != nil {
			return out, fmt.Errorf("tables of %s: %w", f.program, err)
		}
		for _, table := range strings.Fields(string(names)) {
			entries, err := f.read(table)
			if err != nil {
				return out, fmt.Errorf("table %s of %s: %w", table, f.program, err)
			}
			e := f.effect(entries)
			for _, text := range e.clashes(ours) {
				out = append(out, fmt.Sprintf("a rule of %s %s (%s -t %s -S)", f.program, text, f.program, table))
			}
		}
	}
	return out, nil
}

// read returns the entries of a table.
func (f legacyFamily) read(table string) ([]byte, error) {
	fd, err := unix.Socket(f.domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	for range 5 {
		info := make([]byte, legacyInfoLen)
		copy(info, table)
		if err := getsockopt(fd, f.level, legacyGetInfo, info); err != nil {
			return nil, err
		}
		size := binary.NativeEndian.Uint32(info[legacyInfoLen-4:])
		all := make([]byte, legacyHeaderLen+int(size))
		copy(all, table)
		binary.NativeEndian.PutUint32(all[legacyNameLen:], size)
		err := getsockopt(fd, f.level, legacyGetEntries, all)
		if errors.Is(err, unix.EAGAIN) {
			continue // somebody replaced it in between
		}
		return all[legacyHeaderLen:], err
	}
	return nil, unix.EAGAIN
}

func getsockopt(fd, level, name int, value []byte) error {
	n := uint32(len(value))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(&value[0])), uintptr(unsafe.Pointer(&n)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// effect joins those of all entries: each is sizes, matches, and one target (struct xt_entry_target: size, name,
// revision, data).
func (f legacyFamily) effect(entries []byte) (e effect) {
	const nameAt, revisionAt, dataAt = 2, 31, 32
	for len(entries) > f.next+2 {
		target := int(binary.NativeEndian.Uint16(entries[f.target:]))
		next := int(binary.NativeEndian.Uint16(entries[f.next:]))
		if next <= target || next > len(entries) || next-target < dataAt {
			return e // no entry: the list is over, or not what this reads
		}
		t := entries[target:next]
		name, _, _ := bytes.Cut(t[nameAt:revisionAt], []byte{0})
		e.join(xtEffect(string(name), t[revisionAt], t[dataAt:]))
		entries = entries[next:]
	}
	return e
}
