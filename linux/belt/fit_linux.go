package belt

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

// Fit makes a config that this kernel can load. Where it has no bpf_get_netns_cookie for packets (before
// 6.15) sockets are marked when they are made (5.15); where it has none for a type of program at all, that
// program acts in every network namespace. It asks by loading, not by version: distributions carry
// helpers back. When asking is not allowed nothing is changed.
func Fit(c Config) Config {
	if !c.EveryPacket && lacksCookie(ebpf.CGroupSKB) {
		c.EveryPacket = lacksCookie(ebpf.CGroupSock) || lacksCookie(ebpf.SockOps)
		c.MarkForeign = !c.EveryPacket
	}
	c.EveryOption = c.EveryOption || lacksCookie(ebpf.CGroupSockopt)
	return c
}

// Lacking says why this kernel can hold no belt; nil when it can, and when asking is not allowed. It asks by loading
// an empty program of each type.
func Lacking() error {
	for _, t := range []ebpf.ProgramType{ebpf.CGroupSKB, ebpf.CGroupSockopt} {
		if err := features.HaveProgramType(t); errors.Is(err, ebpf.ErrNotSupported) {
			return fmt.Errorf("this kernel has no cgroup BPF (CONFIG_CGROUP_BPF; program type %s): %w", t, err)
		}
	}
	if _, err := NetnsCookie(); errors.Is(err, unix.ENOPROTOOPT) {
		return err
	}
	return nil
}

func lacksCookie(t ebpf.ProgramType) bool {
	return errors.Is(features.HaveProgramHelper(t, asm.FnGetNetnsCookie), ebpf.ErrNotSupported)
}
