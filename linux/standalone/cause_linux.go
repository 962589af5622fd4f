package standalone

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// lastBytes of the log are looked through for the words of a program that ended.
const lastBytes = 16 << 10

// cause says why helper or answerer did not get ready, as far as the host tells: that the file system of the
// log is full (then the log may lack the words that say so), and the last error that was printed there.
func cause(log string) string {
	var all []string
	var fs unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(log), &fs); err == nil && (fs.Bavail == 0 || fs.Files > 0 && fs.Ffree == 0) {
		all = append(all, fmt.Sprintf("the file system of %s is full", filepath.Dir(log)))
	}
	if words := lastError(log); words != "" {
		all = append(all, words)
	}
	if len(all) == 0 {
		return ""
	}
	return ": " + strings.Join(all, "; ")
}

// lastError is the last line of the log that a program of ours printed when it failed: "minhost: CAUSE".
func lastError(log string) string {
	f, err := os.Open(log)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	b := make([]byte, lastBytes)
	n, _ := f.ReadAt(b, max(0, info.Size()-lastBytes)) // short at the end of the file
	words := ""
	for line := range strings.Lines(string(b[:n])) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "minhost: "); ok {
			words = text
		}
	}
	return words
}
