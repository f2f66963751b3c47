//go:build !linux && !darwin && !windows

package service

import "errors"

func current() (manager, error) {
	return nil, errors.New("services are not supported on this system: have its service manager run adit start")
}
