//go:build !linux && !darwin && !windows

package service

import "errors"

// checkFolders leaves it to whoever declares the service.
func checkFolders(string) error { return nil }

func current() (manager, error) {
	return nil, errors.New("services are not supported on this system: have its service manager run adit start")
}
