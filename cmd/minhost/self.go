package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
)

// modulePath is in every build of this program (runtime/debug.BuildInfo), so that an older version is
// told from a stranger's file.
const modulePath = "github.com/gominimal/minhost"

func containsModule(content []byte) bool {
	return bytes.Contains(content, []byte("path\t"+modulePath+"/cmd/minhost"))
}

// thisProgram returns path and sha256 of the program that runs.
func thisProgram() (path, sum string, err error) {
	if path, err = os.Executable(); err != nil {
		return "", "", fmt.Errorf("this program: %w", err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", "", fmt.Errorf("this program: %w", err)
	}
	h := sha256.Sum256(b)
	return path, hex.EncodeToString(h[:]), nil
}
