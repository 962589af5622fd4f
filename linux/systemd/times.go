package systemd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer/host"
)

// startedMessage is the id of "a start job for a unit has finished" (SD_MESSAGE_UNIT_STARTED).
const startedMessage = "39f53479d3a045ac8e11786248231fbf"

// ours is how the names of our units begin.
const ours = "minhost-"

// Started is when a unit of ours was ready for the first time in this boot.
type Started struct {
	Unit string
	// Since is the time from the start of the kernel, without time asleep.
	Since time.Duration
}

// StartTimes reads them from the journal, in order of time: a unit that was started again since has
// another time in systemctl show.
func StartTimes(ctx context.Context, run host.Runner, journalctl string) ([]Started, error) {
	r, err := run.Run(ctx, host.Command{
		Path: journalctl, Args: []string{"--boot", "--no-pager", "--output=json", "MESSAGE_ID=" + startedMessage},
		Timeout: 20 * time.Second, Reads: true,
	})
	if err != nil {
		return nil, fmt.Errorf("read start times from the journal: %w", err)
	}
	all := parseStarted(string(r.Stdout))
	if len(all) == 0 {
		return nil, errors.New("the journal of this boot has no start of a unit of minhost")
	}
	return all, nil
}

// parseStarted reads one JSON object a line; lines that are none of ours are passed over.
func parseStarted(text string) []Started {
	first := map[string]time.Duration{}
	for line := range strings.Lines(text) {
		var e struct {
			Unit string `json:"UNIT"`
			At   string `json:"__MONOTONIC_TIMESTAMP"`
			Sent string `json:"_SOURCE_MONOTONIC_TIMESTAMP"`
		}
		if json.Unmarshal([]byte(line), &e) != nil || !strings.HasPrefix(e.Unit, ours) || !strings.HasSuffix(e.Unit, ".service") {
			continue
		}
		us, err := strconv.ParseInt(cmp.Or(e.Sent, e.At), 10, 64)
		if at, seen := first[e.Unit]; err == nil && (!seen || time.Duration(us)*time.Microsecond < at) {
			first[e.Unit] = time.Duration(us) * time.Microsecond
		}
	}
	var all []Started
	for unit, at := range first {
		all = append(all, Started{unit, at})
	}
	slices.SortFunc(all, func(a, b Started) int { return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Unit, b.Unit)) })
	return all
}
