//go:build !linux

package main

import (
	"context"
	"errors"

	"adit/internal/netlab"
)

// measurePath measures nothing: network namespaces are Linux's.
func measurePath(_ context.Context, _ options, path netlab.Path) (pathReport, error) {
	return pathReport{Path: path.String(), LeftOut: "it needs Linux"}, nil
}

func measureHere(context.Context, options, string) error {
	return errors.New("paths need Linux")
}
