package api

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Error is an error of the interface. Callers branch with errors.As on the concrete types.
type Error interface {
	error
	// ErrorName is the full varlink name, dev.minimal.Host.Busy for example.
	ErrorName() string
	// Hint is the command or change that helps; it may be empty.
	Hint() string
}

// ErrorName gives the full varlink name of an error or of what it wraps; "" when it is none of
// the interface.
func ErrorName(err error) string {
	var e Error
	if errors.As(err, &e) {
		return e.ErrorName()
	}
	return ""
}

// DecodeError turns the name and the parameters of an error reply into its type. A name that
// this version does not know, or parameters that do not fit, are an error of another kind that
// says so: errors.As then finds no Error.
func DecodeError(name string, parameters []byte) error {
	e := NewError(name)
	if e == nil {
		return fmt.Errorf("the helper answered with an unknown error %s: %s", Text(name), Text(string(parameters)))
	}
	if err := json.Unmarshal(parameters, e); err != nil {
		return fmt.Errorf("the helper answered with %s, but its parameters cannot be read: %w", name, err)
	}
	return e
}

// filled makes an absent list an empty one.
func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
