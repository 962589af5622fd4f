package installer

import (
	_ "embed"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// ScriptInfo is what Script needs beside the plan.
type ScriptInfo struct {
	Binary  string   // absolute path of the binary to copy; its owner need not be trusted
	SHA256  string   // of the binary, 64 hex digits
	Program string   // absolute path where the plan installs it
	Args    []string // further arguments of finalize-install, such as --operator
}

//go:embed script.sh
var scriptBody string

// Script renders the plan as a POSIX sh script that an administrator can read, and run as root.
// It shows every file that will be written, and does one thing: it copies the binary to a folder
// that only root can write, checks the copy and runs it. The copy refuses when the host differs
// from this plan.
func Script(p Plan, info ScriptInfo) (string, error) {
	if err := info.check(); err != nil {
		return "", fmt.Errorf("script: %w", err)
	}
	var b strings.Builder
	b.WriteString(scriptHead)
	fmt.Fprintf(&b, "# Plan %s\n#\n", p.Digest())
	for _, r := range p.Rows {
		fmt.Fprintf(&b, "# step %s (%s): %s\n", escape(string(r.ID)), r.State, escape(r.Describe))
	}
	b.WriteString("#\n# Files it will write:\n")
	for _, r := range p.Rows {
		for _, f := range r.Files {
			writeFileComment(&b, f)
		}
	}
	b.WriteString("\nset -eu\n")
	assign(&b, "binary=", info.Binary)
	assign(&b, "sha256=", strings.ToLower(info.SHA256))
	assign(&b, "program=", info.Program)
	assign(&b, "set -- ", append([]string{"--expect", p.Digest()}, info.Args...)...)
	b.WriteString("\n" + scriptBody)
	return b.String(), nil
}

// assign writes words that stand for themselves; shellcheck wants to hear that of a $ in quotes.
func assign(b *strings.Builder, what string, words ...string) {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	line := what + strings.Join(quoted, " ")
	if strings.ContainsAny(line, "$`") {
		b.WriteString("# shellcheck disable=SC2016\n")
	}
	b.WriteString(line + "\n")
}

const scriptHead = `#!/bin/sh
# Written by: minhost finalize-install --show --script
#
# Run it as root. It copies the minhost binary to a folder that only root can write, checks the
# sha256 of that copy and runs "minhost finalize-install --apply" from it. The copy refuses when
# the host is no longer as this plan found it. To take everything back:
# minhost finalize-install --undo
#
`

func writeFileComment(b *strings.Builder, f File) {
	fmt.Fprintf(b, "#\n# %s mode %04o sha256 %s\n", escape(f.Path), f.Mode, f.Hash())
	if f.Content == nil || !utf8.Valid(f.Content) {
		return
	}
	text := strings.TrimSuffix(string(f.Content), "\n")
	for line := range strings.SplitSeq(text, "\n") {
		// Nothing is cut off here: an administrator decides on it.
		b.WriteString("#   | " + strings.ReplaceAll(escape(line), `\x09`, "\t") + "\n")
	}
}

func (i ScriptInfo) check() error {
	for _, p := range []string{i.Binary, i.Program} {
		if !path.IsAbs(p) || path.Clean(p) != p || p == "/" {
			return fmt.Errorf("path %q: not absolute and clean", p)
		}
	}
	for _, s := range append([]string{i.Binary, i.Program}, i.Args...) {
		if strings.ContainsRune(s, 0) {
			return fmt.Errorf("argument %q: a zero byte cannot be passed", s)
		}
	}
	if b, err := hex.DecodeString(i.SHA256); err != nil || len(b) != 32 {
		return fmt.Errorf("sha256 %q: want 64 hex digits", i.SHA256)
	}
	return nil
}

// Quote makes a word safe for sh, whatever bytes but zero are in it.
func Quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@%,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
