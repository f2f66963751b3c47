//go:build !windows

package update

// canReplace is whether a program that runs can be replaced by another at once.
const canReplace = true
