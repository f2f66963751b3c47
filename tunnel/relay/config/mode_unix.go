//go:build !windows

package config

import "io/fs"

// readByOthers reports whether everybody on this machine may read a file.
func readByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o004 != 0 }
