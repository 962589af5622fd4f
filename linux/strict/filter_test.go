package strict

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
)

var rules = Rules{
	Arch: 0xc000003e, Foreign: 0x40000000, Absent: []uint32{425, 250}, Ioctl: 16, Requests: []uint32{0x5412, 0x541c},
	Sockets: []uint32{41, 53}, Families: []uint32{1, 2, 10, 16}, Protocols: []uint32{256},
	ENOSYS: 38, EPERM: 1, EAFNOSUPPORT: 97, EPROTONOSUPPORT: 93,
}

// The filter as the kernel would run it; every word in the byte order of the package's machine.
func TestFilter(t *testing.T) {
	vm, err := bpf.NewVM(rules.Filter())
	if err != nil {
		t.Fatal(err)
	}
	const high = 1 << 32 // the kernel reads an int: so does the filter
	for _, c := range []struct {
		name         string
		arch, number uint32
		args         [3]uint64
		want         uint32 // errno, 0 for allowed
	}{
		{"read", rules.Arch, 0, [3]uint64{}, 0},
		{"a 32-bit program", 0x40000003, 102, [3]uint64{}, 38},
		{"x32", rules.Arch, 0x40000029, [3]uint64{2}, 38},
		{"io_uring_setup", rules.Arch, 425, [3]uint64{}, 38},
		{"keyctl", rules.Arch, 250, [3]uint64{}, 38},
		{"another ioctl", rules.Arch, 16, [3]uint64{0, 0x5413}, 0},
		{"TIOCSTI", rules.Arch, 16, [3]uint64{0, 0x5412}, 1},
		{"TIOCSTI, disguised", rules.Arch, 16, [3]uint64{0, high | 0x5412}, 1},
		{"TIOCLINUX", rules.Arch, 16, [3]uint64{0, 0x541c}, 1},
		{"the number of a request elsewhere", rules.Arch, 1, [3]uint64{0, 0x5412}, 0},
		{"unix", rules.Arch, 41, [3]uint64{1, 1}, 0},
		{"inet", rules.Arch, 41, [3]uint64{2, 1}, 0},
		{"inet6", rules.Arch, 41, [3]uint64{10, 2, 17}, 0},
		{"netlink", rules.Arch, 41, [3]uint64{16, 3}, 0},
		{"vsock", rules.Arch, 41, [3]uint64{40, 1}, 97},
		{"packet", rules.Arch, 41, [3]uint64{17, 3}, 97},
		{"vsock, disguised", rules.Arch, 41, [3]uint64{high | 40, 1}, 97},
		{"a pair of unix", rules.Arch, 53, [3]uint64{1, 1}, 0},
		{"a pair of others", rules.Arch, 53, [3]uint64{30, 1}, 97},
		{"SMC as inet", rules.Arch, 41, [3]uint64{2, 1, 256}, 93},
		{"SMC, disguised", rules.Arch, 41, [3]uint64{2, 1, high | 256}, 93},
	} {
		// The package's machine reads big endian; seccomp_data is in the order of the host.
		data := make([]byte, 64)
		binary.BigEndian.PutUint32(data[offsetNumber:], c.number)
		binary.BigEndian.PutUint32(data[offsetArch:], c.arch)
		for i, a := range c.args {
			binary.BigEndian.PutUint32(data[offsetArgument+8*i:], uint32(a))
			binary.BigEndian.PutUint32(data[offsetArgument+8*i+4:], uint32(a>>32))
		}
		got, err := vm.Run(data)
		if err != nil {
			t.Fatal(err)
		}
		want := uint32(resultAllow)
		if c.want != 0 {
			want = resultErrno | c.want
		}
		if uint32(got) != want {
			t.Errorf("%s: %#x, want %#x", c.name, got, want)
		}
	}
}
