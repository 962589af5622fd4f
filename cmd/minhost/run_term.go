package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer/api"
)

// cutTerm takes the end of a rule off the text of an --allow: @10m, so long after the start, or
// @2026-01-02T15:04:05Z. The helper checks how far away it may be.
func cutTerm(text string, rule *api.Rule) (rest string, err error) {
	rest, term, ok := strings.Cut(text, "@")
	if !ok {
		return text, nil
	}
	if _, err := time.Parse(time.RFC3339, term); err == nil {
		rule.Until = term
		return rest, nil
	}
	d, err := time.ParseDuration(term)
	if err != nil || d < time.Second || d%time.Second != 0 {
		return "", fmt.Errorf("%q is neither a duration of whole seconds, like 90s, 10m or 2h30m, nor a time like 2026-01-02T15:04:05Z", api.Text(term))
	}
	rule.Seconds = int(d / time.Second)
	return rest, nil
}
