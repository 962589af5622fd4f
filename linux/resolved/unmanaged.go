package resolved

import (
	"fmt"

	"github.com/gominimal/minhost/installer"
)

// marker is the first line of the files below.
const marker = "# minhost: written by finalize-install; removed by finalize-install --undo\n"

// UnmanagedFiles keep networkd and NetworkManager away from our link: a catch-all .network file or
// the desktop's list of networks would take its address, or let a user switch it off. Each is for a
// host that has the folder it lies in; without a manager the file does nothing.
func UnmanagedFiles(link string) []installer.File {
	return []installer.File{
		{
			Path: "/etc/systemd/network/10-minhost.network", Mode: 0o644,
			Content: fmt.Appendf(nil, "%s[Match]\nName=%s %s-peer\n\n[Link]\nUnmanaged=yes\n", marker, link, link),
		},
		{
			Path: "/etc/NetworkManager/conf.d/10-minhost.conf", Mode: 0o644,
			Content: fmt.Appendf(nil, "%s[keyfile]\nunmanaged-devices+=interface-name:%s;interface-name:%s-peer\n", marker, link, link),
		},
	}
}
