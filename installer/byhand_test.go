package installer_test

import (
	"slices"
	"testing"

	"github.com/gominimal/minhost/installer"
)

// TestByHand: what was applied in this boot counts, unless the boot itself did it.
func TestByHand(t *testing.T) {
	k, m := newKernel(), &memory{}
	want := func(boot string, ids ...installer.ID) {
		t.Helper()
		got, err := engineAt(boot, m, k.step("a", installer.Persistent), k.step("b", installer.Boot)).ByHand()
		if err != nil || !slices.Equal(got, ids) {
			t.Errorf("%s: %v, %v, want %v", boot, got, err, ids)
		}
	}
	apply := func(boot string, o installer.Options) {
		t.Helper()
		if _, err := engineAt(boot, m, k.step("a", installer.Persistent), k.step("b", installer.Boot)).Apply(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	want("boot-1")
	apply("boot-1", installer.Options{})
	want("boot-1", "a", "b")
	want("boot-2")

	delete(k.on, "b")
	apply("boot-2", installer.Options{Boot: true, AtBoot: true})
	want("boot-2")

	delete(k.on, "b")
	apply("boot-2", installer.Options{Boot: true})
	want("boot-2", "b")
}
