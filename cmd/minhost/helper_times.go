package main

import (
	"time"

	"github.com/gominimal/minhost/installer/helper"
)

// helperTimes are the times of every helper, whatever the system.
func helperTimes(c helper.Config) helper.Config {
	c.Grace, c.AdoptWithin, c.RetryAfter = 500*time.Millisecond, 10*time.Second, time.Second
	c.LookAfter, c.LookupsFor = 500*time.Millisecond, time.Minute
	c.MessageTime, c.IdleAfter = 10*time.Second, 10*time.Minute
	c.Now = time.Now
	return c
}
