package linux

import (
	"testing"

	"github.com/gominimal/minhost/linux/belt"
)

// Belt and table have the same bits by default.
func TestDefaultMarks(t *testing.T) {
	if got, want := (Ground{}).beltConfig(7), belt.Default(7); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
