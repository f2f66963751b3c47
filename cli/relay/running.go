package relay

import (
	"adit/cli/relay/admin"
	"adit/cli/stdio"
)

// running is a running relay, and where to show its responses.
type running struct {
	*admin.API
	std *stdio.Streams
}

func newRunning(std *stdio.Streams, getenv func(string) string) *running {
	return &running{admin.New(getenv, dataFolders), std}
}
