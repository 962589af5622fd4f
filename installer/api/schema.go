package api

import (
	"sync"

	"github.com/varlink/go/varlink/idl"
)

// shape is what a value may look like: one node of the interface description, with the names
// resolved.
type shape struct {
	kind     idl.TypeKind
	optional bool
	element  *shape            // of a list
	fields   map[string]*shape // of a struct
	order    []string          // names of fields, or values of an enum, as declared
}

// shapes are the parameters of each method, read from Description once. The generator has read
// the same text before, so that a failure here is one of the build: it shows as methods without
// a shape, which no test of this package survives.
var shapes = sync.OnceValue(func() map[string]*shape {
	parsed, err := idl.New(Description)
	if err != nil {
		return nil
	}
	types := map[string]*idl.Type{}
	for _, a := range parsed.Aliases {
		types[a.Name] = a.Type
	}
	methods := map[string]*shape{}
	for _, m := range parsed.Methods {
		methods[m.Name] = newShape(m.In, types)
	}
	return methods
})

func newShape(t *idl.Type, types map[string]*idl.Type) *shape {
	switch t.Kind {
	case idl.TypeMaybe:
		s := *newShape(t.ElementType, types)
		s.optional = true
		return &s
	case idl.TypeAlias:
		return newShape(types[t.Alias], types)
	}
	s := &shape{kind: t.Kind}
	if t.ElementType != nil {
		s.element = newShape(t.ElementType, types)
	}
	if t.Kind == idl.TypeStruct {
		s.fields = map[string]*shape{}
	}
	for _, f := range t.Fields {
		s.order = append(s.order, f.Name)
		if f.Type != nil {
			s.fields[f.Name] = newShape(f.Type, types)
		}
	}
	return s
}

// envelope is the shape of a call; parameters are filled in by the method. GetInfo of the Go
// library sends "parameters": null, which means none.
func envelope(parameters *shape) *shape {
	flag := &shape{kind: idl.TypeBool, optional: true}
	return &shape{
		kind: idl.TypeStruct,
		fields: map[string]*shape{
			"method":     {kind: idl.TypeString},
			"parameters": parameters,
			"more":       flag, "oneway": flag, "upgrade": flag,
		},
		order: []string{"method", "parameters", "more", "oneway", "upgrade"},
	}
}
