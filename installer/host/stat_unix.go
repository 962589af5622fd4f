//go:build unix

package host

import (
	"io/fs"
	"syscall"
)

func infoOf(fi fs.FileInfo) Info {
	info := Info{Attr: Attr{UID: -1, GID: -1, Mode: fi.Mode()}, Size: fi.Size(), ModTime: fi.ModTime()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		info.UID, info.GID = int(st.Uid), int(st.Gid)
	}
	return info
}
