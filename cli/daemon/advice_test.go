package daemon

import (
	"strings"
	"testing"

	"adit/service"
)

// A service that is not there is not to be started, and of one that has failed the
// log is to be read.
func TestADaemonThatDoesNotRunIsStartedAsItIsInstalled(t *testing.T) {
	for state, want := range map[string]string{
		service.NotInstalled: "adit service install",
		service.Stopped:      "start its service with `adit service start`",
		service.Failed:       "its service is failed: the log says why",
		"":                   "start it with `adit start`",
	} {
		if got := howToStart(service.Status{State: state, Log: "the log"}); !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", state, got, want)
		}
	}
}
