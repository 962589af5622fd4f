package standalone

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// maxLog is when the log starts anew. The folder is a tmpfs: a log without end would eat memory.
const maxLog = 1 << 20

// logFile is the one log of supervisor, helper and answerer. The children have the file itself as
// their standard output (a pipe to the supervisor would kill them with SIGPIPE once it is gone),
// so it cannot be renamed away from under them: it is copied to PATH.1 and emptied. All writers
// append, so they go on at its new end.
type logFile struct {
	path string
	mu   sync.Mutex
	file *os.File
}

func openLog(path string) (*logFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return &logFile{path: path, file: f}, nil
}

func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Write(p)
}

// trim starts the log anew when it is over max. Lines written between copy and truncation are lost.
func (l *logFile) trim(max int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	info, err := l.file.Stat()
	if err != nil || info.Size() <= max {
		return err
	}
	old, err := os.OpenFile(l.path+".1", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("rotate log: %w", err)
	}
	// The newest max bytes: a child that prints without end may be far over it.
	_, err = io.Copy(old, io.NewSectionReader(l.file, info.Size()-max, max))
	if closed := old.Close(); err == nil {
		err = closed
	}
	if truncated := l.file.Truncate(0); err == nil {
		err = truncated
	}
	if err != nil {
		return fmt.Errorf("rotate log: %w", err)
	}
	return nil
}
