package darwin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/gominimal/minhost/installer/host"
)

// Config is the admin's, for hosts on which something of macOS does not work as it should.
type Config struct {
	// OwnSockets has the answerer bind its port itself instead of launchd: reports of macOS 15 tell of sockets
	// of launchd that fall silent after two replies.
	OwnSockets bool `json:"own_sockets"`
}

// ReadConfig reads the file; none is the zero Config. Root acts on it, so it must be root's alone.
func ReadConfig(files host.FS, path string) (Config, error) {
	b, err := files.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, nil
	}
	if err != nil {
		return Config{}, err
	}
	if err := host.Trusted(files, path); err != nil {
		return Config{}, err
	}
	var c Config
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Config{}, fmt.Errorf("read %s: %w", path, err)
	}
	return c, nil
}
