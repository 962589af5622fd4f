package installer_test

import (
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer"
)

func TestOptions(t *testing.T) {
	for _, tc := range []struct {
		o    installer.Options
		want string
	}{
		{installer.Options{Boot: true}, "apply b,apply d"},
		{installer.Options{Only: []installer.ID{"d", "a"}}, "apply a,apply d"},
		{installer.Options{Only: []installer.ID{"d", "a"}, Boot: true}, "apply d"},
		{installer.Options{Only: []installer.ID{}}, ""},
	} {
		k := newKernel()
		e := engine(&memory{}, k.step("a", installer.Persistent), k.step("b", installer.Boot),
			k.step("c", installer.Persistent), k.step("d", installer.Boot))
		if _, err := e.Apply(ctx, tc.o); err != nil || strings.Join(k.calls, ",") != tc.want {
			t.Errorf("%+v: %v, %v", tc.o, k.calls, err)
		}
	}
	k := newKernel()
	_, err := engine(&memory{}, k.step("a", 0), k.step("b", 0)).Apply(ctx, installer.Options{Only: []installer.ID{"a", "typo"}})
	if err == nil || !strings.Contains(err.Error(), `"typo"`) || !strings.Contains(err.Error(), "a, b") || len(k.calls) > 0 {
		t.Errorf("unknown id: %v, %v", err, k.calls)
	}
	if _, err := engine(&memory{}, k.step("a", 0), k.step("a", 0)).Apply(ctx, installer.Options{}); err == nil {
		t.Error("two steps of one id are accepted")
	}
}
