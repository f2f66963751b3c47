// Package frontend holds the built Web UI, so that the program needs no file
// beside itself and no Node.js to be built. The sources are in src; dist is
// what `npm run build` makes of them and is committed with them.
package frontend

import (
	"embed"
	"io/fs"
)

// The "all:" keeps files whose names begin with "_" or ".".
//
//go:embed all:dist
var dist embed.FS

// AgentUI returns the agent's Web UI: index.html at its root, and under
// assets/ the files whose names carry a hash of their content, which may
// therefore be cached for ever.
func AgentUI() fs.FS { return built("dist/agent") }

// Console returns the page of the relay's console, laid out alike.
func Console() fs.FS { return built("dist/console") }

func built(dir string) fs.FS {
	ui, err := fs.Sub(dist, dir)
	if err != nil {
		// fs.Sub refuses malformed names only, and this one is constant.
		panic(err)
	}
	return ui
}
