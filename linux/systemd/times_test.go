package systemd

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestParseStarted: the first start of each of our services, in order of time.
func TestParseStarted(t *testing.T) {
	text := `{"UNIT":"minhost-helper.service","__MONOTONIC_TIMESTAMP":"900000","MESSAGE":"Started"}
{"UNIT":"minhost-tree.service","__MONOTONIC_TIMESTAMP":"700000","_SOURCE_MONOTONIC_TIMESTAMP":"410000"}
{"UNIT":"minhost-helper.socket","__MONOTONIC_TIMESTAMP":"100"}
{"UNIT":"ssh.service","__MONOTONIC_TIMESTAMP":"100"}
{"UNIT":"minhost-helper.service","__MONOTONIC_TIMESTAMP":"99000000"}
{"UNIT":"minhost-names.service","__MONOTONIC_TIMESTAMP":"soon"}
not json
`
	want := []Started{{"minhost-tree.service", 410 * time.Millisecond}, {"minhost-helper.service", 900 * time.Millisecond}}
	if diff := cmp.Diff(want, parseStarted(text)); diff != "" {
		t.Error(diff)
	}
}
