package zonefile

import (
	"bytes"
	"maps"
	"net/netip"
	"testing"
)

// FuzzDecode: whatever is decoded passes Check and is written the same way again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("minhost-zone 1 boot 0 0\n"))
	f.Add([]byte("minhost-zone 1 boot 7 2\napi.web 127.0.64.253\nweb -\n"))
	f.Add([]byte("minhost-zone 1 boot 18446744073709551615 1\na.b.c 127.0.64.1\n"))
	f.Add([]byte("minhost-zone 1 boot 18446744073709551616 1\nweb 127.0.64.254\n"))
	f.Add([]byte("minhost-zone 2\n"))
	f.Add([]byte("\n\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Decode(data)
		if err != nil {
			return
		}
		if err := file.Check(); err != nil {
			t.Fatalf("decoded what cannot be written: %v", err)
		}
		if again := Encode(file); !bytes.Equal(again, data) {
			t.Fatalf("%q\nwritten again as\n%q", data, again)
		}
	})
}

// FuzzEncode: a File that passes Check comes back the same, any other is not decoded at all. So
// no name or boot id, whatever is in it, can put a line of its own into the file.
func FuzzEncode(f *testing.F) {
	f.Add("boot", uint64(7), "web", "api", []byte{127, 0, 64, 1})
	f.Add("boot", uint64(7), "web 127.0.64.9\nzzz", "api", []byte{127, 0, 64, 1})
	f.Add("boot 7 0\nminhost-zone 1 boot", uint64(7), "", "-", []byte{})
	f.Add("b 7 2\na -", uint64(1), "host", "w", []byte{127, 0, 0, 1})
	f.Fuzz(func(t *testing.T, boot string, generation uint64, one, two string, addr []byte) {
		a, _ := netip.AddrFromSlice(addr)
		in := File{BootID: boot, Generation: generation, Names: map[string]netip.Addr{one: a, two: {}}}
		out, err := Decode(Encode(in))
		if in.Check() == nil {
			if err != nil || out.BootID != boot || out.Generation != generation || !maps.Equal(out.Names, in.Names) {
				t.Fatalf("%+v came back as %+v, %v", in, out, err)
			}
		} else if err == nil {
			t.Fatalf("%+v fails Check but was decoded as %+v", in, out)
		}
	})
}
