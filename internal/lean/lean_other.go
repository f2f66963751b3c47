//go:build !linux

package lean

// forgetProgram unmaps the pages of the program's own file where the system
// lets it: on Linux.
func forgetProgram() {}
