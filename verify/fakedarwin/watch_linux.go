package fakedarwin

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watch sees every name that appears in a folder, be it for a moment, from before the folder exists.
type watch struct {
	queue *os.File
	mu    sync.Mutex
	names map[string]bool
}

func newWatch(root, parent, name string) (*watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	w := &watch{queue: os.NewFile(uintptr(fd), "inotify"), names: map[string]bool{}}
	const changes = unix.IN_CREATE | unix.IN_MOVED_TO
	above := filepath.Join(root, parent)
	up, err := unix.InotifyAddWatch(fd, above, changes)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(above, name)
	unix.InotifyAddWatch(fd, folder, changes) // where it exists already
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := w.queue.Read(buf)
			if err != nil {
				return
			}
			for at := 0; at < n; {
				e := (*unix.InotifyEvent)(unsafe.Pointer(&buf[at]))
				text := strings.TrimRight(string(buf[at+unix.SizeofInotifyEvent:at+unix.SizeofInotifyEvent+int(e.Len)]), "\x00")
				at += unix.SizeofInotifyEvent + int(e.Len)
				if int(e.Wd) == up {
					if text == name {
						unix.InotifyAddWatch(fd, folder, changes)
						w.list(folder) // what came before the watch
					}
					continue
				}
				w.add(text)
			}
		}
	}()
	return w, nil
}

func (w *watch) list(folder string) {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		w.add(e.Name())
	}
}

func (w *watch) add(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[name] = true
}

func (w *watch) close() { w.queue.Close() }

// ResolverNames are all names that ever appeared in /etc/resolver, sorted.
func (m *Mac) ResolverNames() []string {
	m.folder.mu.Lock()
	defer m.folder.mu.Unlock()
	var all []string
	for n := range m.folder.names {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}
