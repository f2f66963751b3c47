package config

import "io/fs"

// readByOthers reports whether everybody on this machine may read a file. On Windows that
// depends on the access list of the folder, which is not checked.
func readByOthers(fs.FileInfo) bool { return false }
