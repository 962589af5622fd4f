package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"time"

	"github.com/varlink/go/varlink"

	"github.com/gominimal/minhost/installer/api"
)

// Failure is what went wrong between this program and the helper, as opposed to what the helper
// answered (the errors of installer/api): one sentence, and the command that helps.
type Failure struct {
	Message string
	Next    string
	Err     error
}

func (f *Failure) Error() string { return f.Message }
func (f *Failure) Unwrap() error { return f.Err }

// Hint is the next command; it may be empty.
func (f *Failure) Hint() string { return f.Next }

func dialFailure(path string, err error) error {
	f := &Failure{Err: err, Next: "minhost finalize-install"}
	at := api.Text(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Message = fmt.Sprintf("there is no helper at %s: minhost is not installed on this host, or not finished", at)
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Message = fmt.Sprintf("the helper at %s does not run", at)
	case errors.Is(err, fs.ErrPermission):
		f.Message = fmt.Sprintf("this account may not reach the helper at %s: its folder or socket has a wrong mode", at)
	case errors.Is(err, syscall.EAGAIN):
		f.Message = fmt.Sprintf("the helper at %s is too busy to take a connection", at)
		f.Next = "minhost status"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		f.Message = fmt.Sprintf("the helper at %s was not reached: %v", at, err)
		f.Next = "minhost status"
	default:
		f.Message = fmt.Sprintf("the helper at %s cannot be reached: %v", at, err)
	}
	return f
}

// callFailure words an error of the connection; what is a helper's answer already stays it.
func callFailure(method string, err error) error {
	if api.ErrorName(err) != "" {
		return err
	}
	f := &Failure{Err: err, Next: "minhost status"}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.Message = fmt.Sprintf("the helper did not answer %s in time", method)
	case errors.Is(err, context.Canceled):
		f.Message = fmt.Sprintf("the call of %s was given up", method)
		f.Next = ""
	default:
		f.Message = fmt.Sprintf("the connection to the helper broke during %s: %v", method, err)
	}
	return f
}

// reply turns an error of the library into the type of the helper's answer. known is false when
// it is none: then the connection cannot be used any more.
func reply(err error) (answer error, known bool) {
	var answered *varlink.Error
	var notFound *varlink.MethodNotFound
	var notDone *varlink.MethodNotImplemented
	var foreign *varlink.InterfaceNotFound
	switch {
	case errors.As(err, &answered):
		raw, _ := answered.Parameters.(*json.RawMessage)
		if raw == nil {
			raw = &json.RawMessage{'{', '}'}
		}
		return api.DecodeError(answered.Name, *raw), true
	case errors.As(err, &notFound), errors.As(err, &notDone), errors.As(err, &foreign):
		return err, true
	}
	return nil, false
}

// partingTime bounds the wait for the last words of a helper that closed.
const partingTime = time.Second

// parting reads what a helper said before it closed a connection without reading from it, as it
// does when an account holds too many: the send fails then, but the reason lies in the socket.
// It is only called after a failed send, when nobody else reads.
func (c *Client) parting(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	c.sock.SetReadDeadline(time.Now().Add(partingTime))
	text, err := io.ReadAll(io.LimitReader(c.sock, api.MaxMessage))
	if len(text) == 0 && err != nil {
		return nil
	}
	var last struct {
		Error      string          `json:"error"`
		Parameters json.RawMessage `json:"parameters"`
	}
	text, _, _ = bytes.Cut(text, []byte{0})
	if json.Unmarshal(text, &last) != nil || last.Error == "" {
		return nil
	}
	return api.DecodeError(last.Error, last.Parameters)
}
