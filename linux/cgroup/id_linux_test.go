package cgroup

import (
	"encoding/binary"
	"testing"
)

// CASES B34: ids above 2^32 keep their upper half.
func TestHandleID(t *testing.T) {
	const id = 0x1234_0000_0000_0abc
	b := binary.NativeEndian.AppendUint64(nil, id)
	if got, ok := handleID(0xfe, b); !ok || got != id {
		t.Errorf("%#x, %v", got, ok)
	}
	if got, ok := handleID(1, b); ok {
		t.Errorf("handle of another file system: %#x", got)
	}
	if got, ok := handleID(0xfe, b[:4]); ok {
		t.Errorf("short handle: %#x", got)
	}
}
