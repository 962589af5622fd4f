package resolverd

import (
	"io/fs"
	"os"

	"github.com/fsnotify/fsnotify"
)

// eventBuffer holds the events that come while a zone is read and for the pace; then they are one change.
const eventBuffer = 256

// watch is the notification for the folder of the zone file. The folder, not the file: the writer
// replaces the file, and a watch on it would stay with the old one.
type watch struct {
	*fsnotify.Watcher             // nil when the host gives none: polling is left
	folder            string      // its path
	info              fs.FileInfo // of the folder that is watched; nil when none is
}

func (w *watch) close() {
	if w.Watcher != nil {
		w.Close()
	}
}

// pause ends the notification until renew.
func (w *watch) pause() {
	if w.info != nil {
		_ = w.Remove(w.folder) // fails when the kernel has dropped it with the folder
	}
	w.info = nil
}

// renew watches the folder that is now at the path. It tells whether that is another than before.
func (w *watch) renew() bool {
	info, err := os.Stat(w.folder)
	if w.Watcher == nil || err != nil || w.info != nil && os.SameFile(info, w.info) && len(w.WatchList()) > 0 {
		return false // a folder made anew may have the number of the old one: its watch is gone
	}
	w.pause()
	if w.Add(w.folder) == nil {
		w.info = info
	}
	return w.info != nil
}

// drain drops what is queued: the read that follows sees all of it.
func drain(events <-chan fsnotify.Event) {
	for {
		select {
		case <-events:
		default:
			return
		}
	}
}
