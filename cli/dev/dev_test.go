package dev

import (
	"errors"
	"fmt"
	"testing"

	"adit/cli/command"
)

// Many a service that is to be published listens on 8080, which adit dev favours
// too; one that is started later must find its port free, and not adit at it.
func TestDevLeavesThePublishedPortAlone(t *testing.T) {
	const port = 8080
	published := fmt.Sprintf("127.0.0.1:%d", port)
	if got, err := favour("", published, port); err != nil || got != "127.0.0.1:0" {
		t.Errorf("favoured: got %s, %v, want a free port", got, err)
	}
	var usage *command.UsageError
	if _, err := favour(published, "127.0.0.1:0", port); !errors.As(err, &usage) {
		t.Errorf("asked for: got error %v, want wrong usage", err)
	}
	if got, err := favour("127.0.0.1:8081", published, port); err != nil || got != "127.0.0.1:8081" {
		t.Errorf("another: got %s, %v", got, err)
	}
}
