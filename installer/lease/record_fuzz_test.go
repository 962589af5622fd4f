package lease

import (
	"os"
	"reflect"
	"slices"
	"testing"
)

// TestRecordDamaged: a record with one flipped bit, or cut anywhere, is an error or says what it said.
func TestRecordDamaged(t *testing.T) {
	want := sample(t)
	b, err := Encode(want, "boot-1")
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, at int, damaged []byte) {
		got, err := Decode(damaged, "boot-1")
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%s at %d of %d: read as %+v", what, at, len(b), got)
		}
	}
	for i := range b {
		for bit := range 8 {
			damaged := slices.Clone(b)
			damaged[i] ^= 1 << bit
			check("a flipped bit", i, damaged)
		}
		check("cut", i, b[:i])
	}
}

// FuzzDecode reads anything as a record: what is taken can be written and read again.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"lease-v1.json", "lease-v1-own-ip.json"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		l, err := Decode(b, "boot-1")
		if err != nil {
			f.Fatal(err)
		}
		if b, err = Encode(l, "boot-1"); err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := Decode(b, "boot-1")
		if err != nil {
			return
		}
		if !ValidID(l.ID) || l.Number == 0 || l.Address.IsValid() && !Leasable(l.Address) {
			t.Errorf("taken: %+v", l)
		}
		again, err := Encode(l, "boot-1")
		if err != nil {
			t.Skip() // a time that RFC 3339 does not have
		}
		if got, err := Decode(again, "boot-1"); err != nil || !reflect.DeepEqual(got, l) {
			t.Errorf("%v\n got %+v\nwant %+v", err, got, l)
		}
	})
}
