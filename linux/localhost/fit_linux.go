package localhost

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
)

// Fit makes a config that this kernel can load. It asks by loading, not by version.
func Fit(c Config) Config {
	c.Multipath = features.HaveProgramHelper(ebpf.CGroupSockAddr, asm.FnSkcToMptcpSock) == nil
	return c
}
