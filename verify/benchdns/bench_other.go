//go:build !linux

package main

import (
	"context"
	"errors"
	"io"
)

func (bench) run(context.Context, io.Writer) error { return errors.New("it measures on Linux only") }
