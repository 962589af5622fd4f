package linux

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// maxConfig bounds what is read.
const maxConfig = 64 << 10

// ReadConfig reads the file, which need not be there. It must be root's, and nobody else may write it: its values decide
// what a box's packet needs to leave.
func ReadConfig(path string) (Config, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return DefaultConfig(), nil
	}
	if err != nil {
		return Config{}, fmt.Errorf("config: %w", err)
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Config{}, fmt.Errorf("config %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Uid != 0 || st.Mode&0o022 != 0 {
		return Config{}, fmt.Errorf("config %s: it must be a file of root's that nobody else may write", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxConfig))
	if err != nil {
		return Config{}, fmt.Errorf("config %s: %w", path, err)
	}
	c, err := ParseConfig(text)
	if err != nil {
		return Config{}, fmt.Errorf("config %s: %w", path, err)
	}
	return c, nil
}
