//go:build !linux

package main

import (
	"context"
	"errors"
)

func keepAwake(context.Context) (func(), error) {
	return nil, errors.New("-awake: only on Linux")
}

func idleHere() {}
