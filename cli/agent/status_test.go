package agent

import (
	"bytes"
	"strings"
	"testing"

	"adit/localapi/client"
)

func TestStatusSaysWhichCommandTheDaemonIsAPartOf(t *testing.T) {
	var text bytes.Buffer
	writeStatus(&text, client.Status{PID: 4711, RunBy: "adit http"})
	if !strings.Contains(text.String(), "process 4711 (adit http, and ends with it)") {
		t.Errorf("got %s", text.String())
	}
}
