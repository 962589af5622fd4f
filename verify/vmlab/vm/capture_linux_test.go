package vm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

// The destinations of guest/wire_linux.go: nobody is there, and each has one sender.
var aims = []struct {
	who       string
	addresses []string
	frames    bool // whether there are to be any
}{
	{"the host", []string{"203.0.113.8", "2001:db8:71:0:5048:4f53:5448:8"}, true},
	{"an open box", []string{"203.0.113.10", "2001:db8:71:0:5048:4f53:5448:a"}, true},
	{"a deny-all box", []string{"203.0.113.9", "2001:db8:71:0:5048:4f53:5448:9"}, false},
}

// capture looks at every frame that the machine has sent since it was switched on: from whom there is one.
func capture(t *testing.T, work string) {
	t.Helper()
	f, err := os.Open(filepath.Join(work, "frames"))
	must(t, err)
	defer f.Close()
	frames, err := readFrames(f)
	must(t, err)
	t.Logf("%d frames", len(frames))
	for _, aim := range aims {
		for _, text := range aim.addresses {
			t.Run("frames of "+aim.who+" to "+text, func(t *testing.T) {
				n := naming(frames, netip.MustParseAddr(text))
				if (n > 0) != aim.frames {
					t.Errorf("%d frames", n)
				}
			})
		}
	}
}

// naming counts the frames that have the octets of an address anywhere: as a destination, or asked for.
func naming(frames [][]byte, a netip.Addr) (n int) {
	for _, f := range frames {
		if bytes.Contains(f, a.AsSlice()) {
			n++
		}
	}
	return n
}

// readFrames reads a file of libpcap's older format, which qemu's filter-dump writes: a header of 24
// octets, the first four its magic in the byte order of all others; then for each frame 16, of which the
// third four say how long it is, and itself. A last frame that is cut off is left out: qemu had ended.
func readFrames(r io.Reader) ([][]byte, error) {
	head := make([]byte, 24)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, fmt.Errorf("read frames: header: %w", err)
	}
	const magic = 0xa1b2c3d4
	if binary.LittleEndian.Uint32(head) != magic {
		return nil, fmt.Errorf("read frames: the file begins with % x", head[:4])
	}
	var frames [][]byte
	for {
		_, err := io.ReadFull(r, head[:16])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return frames, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read frames: %w", err)
		}
		n := binary.LittleEndian.Uint32(head[8:])
		if n > 1<<16 {
			return nil, fmt.Errorf("read frames: frame %d has %d octets", len(frames)+1, n)
		}
		frame := make([]byte, n)
		if _, err := io.ReadFull(r, frame); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return frames, nil
		} else if err != nil {
			return nil, fmt.Errorf("read frames: %w", err)
		}
		frames = append(frames, frame)
	}
}

// TestReadFrames: nothing of a file is passed over but a frame that is cut off.
func TestReadFrames(t *testing.T) {
	file := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	file = append(file, make([]byte, 20)...)
	add := func(frame []byte) {
		file = append(file, make([]byte, 8)...)
		file = binary.LittleEndian.AppendUint32(file, uint32(len(frame)))
		file = binary.LittleEndian.AppendUint32(file, uint32(len(frame)))
		file = append(file, frame...)
	}
	add([]byte("to \xcb\x00\x71\x09 and back"))
	add(nil)
	whole := len(file)
	add([]byte("\xcb\x00\x71\x08"))
	for cut := whole; cut <= len(file); cut++ {
		frames, err := readFrames(bytes.NewReader(file[:cut]))
		want := 2
		if cut == len(file) {
			want = 3
		}
		if err != nil || len(frames) != want {
			t.Errorf("%d octets: %d frames, %v; want %d", cut, len(frames), err, want)
		}
		if n := naming(frames, netip.MustParseAddr("203.0.113.9")); n != 1 {
			t.Errorf("%d octets: %d frames name 203.0.113.9", cut, n)
		}
	}
	if _, err := readFrames(bytes.NewReader(file[1:])); err == nil {
		t.Error("another magic is no error")
	}
}
