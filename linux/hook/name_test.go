package hook

import "testing"

// A role is told from others' programs, from other roles of ours, and from what only begins like it.
func TestOurs(t *testing.T) {
	for name, want := range map[string]bool{
		"minhost_e0123ab": true, "minhost_effffff": true,
		"": false, "minhost_e": false, "minhost_e00000": false, "minhost_e0000000": false, "minhost_e00000z": false,
		"minhost_e00000A": false, "xminhost_e000000": false, "minhost_i000000": false, "sd_fw_egress": false,
	} {
		if Ours("minhost_e", name) != want {
			t.Errorf("%q: want %v", name, want)
		}
	}
}
