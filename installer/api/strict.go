package api

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/varlink/go/varlink/idl"
)

const (
	// MaxMessage is the length of a message in octets, without the NUL that ends it.
	MaxMessage = 65536
	// MaxDescriptors is the number of descriptors that a message may carry.
	MaxDescriptors = 4
	// maxDepth bounds the nesting of parameters that have no shape here (other interfaces).
	maxDepth = 16
)

// Strict checks a whole call message (without the NUL at its end) before anything of it is
// decoded: valid UTF-8 and JSON, one value, no longer than MaxMessage; a known, single, exactly
// spelt field at every depth; values of the declared types, required ones present. method is the
// bare name that the message is served as; the message must say the same. With an empty method
// the one in the message counts, and a message for another interface is only checked for its
// envelope, doubled fields and depth.
//
// Errors are ready to be sent: MessageTooLarge, Malformed (no call at all) or InvalidArgument,
// whose Field is the path, parameters.policy.rules[2].ports for example.
func Strict(raw []byte, method string) error {
	if len(raw) > MaxMessage {
		return &MessageTooLarge{
			Limit: MaxMessage, Message: "the message is too long",
			Next: "send fewer rules: a wider CIDR, a range of ports",
		}
	}
	if !utf8.Valid(raw) {
		return malformed("the message is not valid UTF-8")
	}
	if !json.Valid(raw) {
		return malformed("the message is not one JSON value")
	}
	named := methodOf(raw)
	if method == "" {
		method, _ = strings.CutPrefix(named, Interface+".")
	} else if named != Interface+"."+method {
		return malformed("the message does not call " + Interface + "." + method)
	}
	parameters := &shape{kind: idl.TypeObject, optional: true}
	if s, known := shapes()[method]; known {
		p := *s
		p.optional = allOptional(s)
		parameters = &p
	}
	w := newWalker(raw)
	return w.value("", envelope(parameters), 0)
}

// Decode checks a message with Strict and decodes its parameters into a new <Method>In, which
// it returns as a pointer.
func Decode(raw []byte, method string) (any, error) {
	if err := Strict(raw, method); err != nil {
		return nil, err
	}
	call := struct {
		Parameters any `json:"parameters"`
	}{Parameters: NewIn(method)}
	if call.Parameters == nil {
		return nil, malformed("there is no method " + method)
	}
	if err := json.Unmarshal(raw, &call); err != nil {
		return nil, malformed(err.Error())
	}
	if call.Parameters == nil { // "parameters": null
		return NewIn(method), nil
	}
	return call.Parameters, nil
}

// methodOf reads the first field that is spelt method, exactly; that there is one only, the walk
// finds out.
func methodOf(raw []byte) string {
	var fields map[string]json.RawMessage
	var name string
	if json.Unmarshal(raw, &fields) != nil || json.Unmarshal(fields["method"], &name) != nil {
		return ""
	}
	return name
}

func allOptional(s *shape) bool {
	for _, f := range s.fields {
		if !f.optional {
			return false
		}
	}
	return true
}

func newWalker(raw []byte) *walker {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return &walker{tokens: d}
}

func malformed(message string) error {
	return &Malformed{
		Message: Text(message),
		Next:    `send {"method": "` + Interface + `.<Method>", "parameters": {...}} and a NUL octet`,
	}
}
