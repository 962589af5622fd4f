package main

import (
	"fmt"
	"strings"

	"github.com/varlink/go/varlink/idl"
)

// initialisms are the words that Go writes in capitals.
var initialisms = map[string]string{
	"id": "ID", "ip": "IP", "tcp": "TCP", "udp": "UDP", "icmp": "ICMP", "uid": "UID", "url": "URL", "mtu": "MTU", "pid": "PID", "ok": "OK",
}

// goName turns own_ip into OwnIP.
func goName(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		if upper, ok := initialisms[word]; ok {
			b.WriteString(upper)
		} else if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// goType gives the Go type of a field and its JSON options. An optional string, number, bool or
// list is a plain one that is left out when it is zero: nowhere in this interface does an absent
// value mean anything else than the zero one. An optional struct is a pointer.
func (g *generator) goType(t *idl.Type) (name, options string, err error) {
	switch t.Kind {
	case idl.TypeBool:
		return "bool", "", nil
	case idl.TypeInt:
		return "int", "", nil
	case idl.TypeString:
		return "string", "", nil
	case idl.TypeAlias:
		if _, ok := g.kinds[t.Alias]; !ok {
			return "", "", fmt.Errorf("type %s is not defined", t.Alias)
		}
		return t.Alias, "", nil
	case idl.TypeArray:
		element, _, err := g.goType(t.ElementType)
		return "[]" + element, "", err
	case idl.TypeMaybe:
		element, _, err := g.goType(t.ElementType)
		if t.ElementType.Kind == idl.TypeAlias && g.kinds[t.ElementType.Alias] == idl.TypeStruct {
			element = "*" + element
		}
		return element, ",omitempty", err
	}
	return "", "", fmt.Errorf("type kind %d has no Go type here", t.Kind)
}

// comment writes the documentation of an exported name; a name without one is an error.
func (g *generator) comment(name, doc string) error {
	doc = strings.TrimSpace(doc)
	if doc == "" {
		return fmt.Errorf("%s has no comment in the interface file", name)
	}
	const width = 97 // "// " comes before it
	line := name + ":"
	for word := range strings.FieldsSeq(doc) {
		// The parser swallows the newline of a bare "#" line: its next line keeps the "#".
		if word == "#" {
			continue
		}
		if len(line)+1+len(word) > width {
			g.line("// %s", line)
			line = word
			continue
		}
		line += " " + word
	}
	g.line("// %s", line)
	return nil
}
