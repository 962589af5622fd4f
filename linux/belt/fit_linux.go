package belt

import (
	"errors"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
)

// Fit makes a config that this kernel can load: where it has no bpf_get_netns_cookie for a type of
// program, that program acts in every network namespace. It asks by loading, not by version: the
// helper came to the two types at different times, and distributions carry it back. When asking is not
// allowed nothing is changed.
func Fit(c Config) Config {
	c.EveryPacket = c.EveryPacket || lacksCookie(ebpf.CGroupSKB)
	c.EveryOption = c.EveryOption || lacksCookie(ebpf.CGroupSockopt)
	return c
}

func lacksCookie(t ebpf.ProgramType) bool {
	return errors.Is(features.HaveProgramHelper(t, asm.FnGetNetnsCookie), ebpf.ErrNotSupported)
}
