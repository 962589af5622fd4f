package linux

import (
	"testing"

	"github.com/gominimal/minhost/linux/belt"
	"github.com/gominimal/minhost/linux/localhost"
	"github.com/gominimal/minhost/linux/nft"
)

// Belt and table have the same bits by default.
func TestDefaultMarks(t *testing.T) {
	if got, want := (Ground{}).beltConfig(7), belt.Default(7); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// So has the guard of own localhosts, and those that a config moves.
func TestMarksOfTheGuard(t *testing.T) {
	if got := (Ground{}).sentMarks(); got != localhost.DefaultMarks() {
		t.Errorf("%+v, want %+v", got, localhost.DefaultMarks())
	}
	moved := nft.Marks{Belt: 0x01000000, Lease: 0x02000000, Host: 0x04000000, Ingress: 0x08000000, Foreign: 0x10000000, Flow: 0x20000000}
	if got, want := (Ground{Marks: moved}).sentMarks(), (localhost.Marks{Sent: 0x03000000, Vary: 0x0400ffff, Admit: 0x08000000}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
