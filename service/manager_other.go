//go:build !linux && !darwin && !windows

package service

import "errors"

// checkFolders leaves it to whoever declares the service.
func checkFolders(string) error { return nil }

// packageRemoval says how to remove a package that has installed the service.
const packageRemoval = "remove the package"

func current() (manager, error) {
	return nil, errors.New("services are not supported on this system: have its service manager run adit start")
}
