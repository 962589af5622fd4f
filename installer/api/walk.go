package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/varlink/go/varlink/idl"
)

// walker reads a message, known to be valid JSON, token by token beside its shape.
type walker struct {
	tokens *json.Decoder
}

func (w *walker) next() json.Token {
	t, err := w.tokens.Token()
	if err != nil { // cannot be: json.Valid was true
		return nil
	}
	return t
}

// value checks the next value against s. path is where it stands.
func (w *walker) value(path string, s *shape, depth int) error {
	if depth > maxDepth {
		return wrong(path, "is nested too deep", "")
	}
	t := w.next()
	if t == nil {
		if s.optional {
			return nil
		}
		return wrong(path, "must not be null", "leave it out or give it a value")
	}
	switch s.kind {
	case idl.TypeStruct:
		if t != json.Delim('{') {
			return wrong(path, "must be an object", "")
		}
		return w.fields(path, s, depth)
	case idl.TypeArray:
		if t != json.Delim('[') {
			return wrong(path, "must be a list", "")
		}
		return w.list(path, s.element, depth)
	case idl.TypeObject:
		return w.anything(path, t, depth)
	}
	return scalar(path, s, t)
}

func (w *walker) list(path string, element *shape, depth int) error {
	for i := 0; w.tokens.More(); i++ {
		if err := w.value(path+"["+strconv.Itoa(i)+"]", element, depth+1); err != nil {
			return err
		}
	}
	w.next() // ]
	return nil
}

func (w *walker) fields(path string, s *shape, depth int) error {
	seen := map[string]bool{}
	for w.tokens.More() {
		name, _ := w.next().(string)
		at := join(path, name)
		field, known := s.fields[name]
		switch {
		case !known:
			return wrong(at, "is not known", spelling(name, s.order))
		case seen[name]:
			return wrong(at, "is given twice", "give it once")
		}
		seen[name] = true
		if err := w.value(at, field, depth+1); err != nil {
			return err
		}
	}
	w.next() // }
	for _, name := range s.order {
		if !seen[name] && !s.fields[name].optional {
			return wrong(join(path, name), "is missing", "add it")
		}
	}
	return nil
}

// anything checks a value of no known shape for doubled fields and depth.
func (w *walker) anything(path string, t json.Token, depth int) error {
	seen := map[string]bool{}
	free := &shape{kind: idl.TypeObject, optional: true}
	switch t {
	case json.Delim('['):
		return w.list(path, free, depth)
	case json.Delim('{'):
		for w.tokens.More() {
			name, _ := w.next().(string)
			if seen[name] {
				return wrong(join(path, name), "is given twice", "give it once")
			}
			seen[name] = true
			if err := w.value(join(path, name), free, depth+1); err != nil {
				return err
			}
		}
		w.next()
	}
	return nil
}

func scalar(path string, s *shape, t json.Token) error {
	switch s.kind {
	case idl.TypeBool:
		if _, ok := t.(bool); !ok {
			return wrong(path, "must be true or false", "")
		}
	case idl.TypeInt:
		n, ok := t.(json.Number)
		if !ok {
			return wrong(path, "must be a whole number", "")
		}
		// No fraction and no exponent; 32 bits are more than any number of the interface needs.
		if _, err := strconv.ParseInt(string(n), 10, 32); err != nil || n == "-0" {
			return wrong(path, "must be a whole number of 32 bits", "")
		}
	case idl.TypeString:
		if _, ok := t.(string); !ok {
			return wrong(path, "must be a string", "")
		}
	case idl.TypeEnum:
		v, ok := t.(string)
		if !ok || !slices.Contains(s.order, v) {
			return wrong(path, fmt.Sprintf("has an unknown value %s", Text(fmt.Sprint(t))),
				"use one of "+strings.Join(s.order, ", "))
		}
	default:
		return wrong(path, "has a type that this version cannot check", "")
	}
	return nil
}

func join(path, name string) string {
	if path == "" {
		return Text(name)
	}
	return path + "." + Text(name)
}

// spelling helps with a field in another letter case.
func spelling(name string, known []string) string {
	for _, k := range known {
		if strings.EqualFold(k, name) {
			return "write " + k
		}
	}
	if len(known) == 0 {
		return "leave it out"
	}
	return "known here: " + strings.Join(known, ", ")
}

// wrong is an InvalidArgument inside the parameters and Malformed in the envelope.
func wrong(path, what, next string) error {
	if path == "" {
		return malformed("the message " + what)
	}
	if path != "parameters" && !strings.HasPrefix(path, "parameters.") {
		return malformed("the field " + path + " " + what)
	}
	return &InvalidArgument{Field: Text(path), Message: Text(path + " " + what), Next: next}
}
