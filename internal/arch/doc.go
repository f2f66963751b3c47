// Package arch holds the shape of the tree: its tests fail if an import runs up
// instead of down, or if a package has no doc. It has no code.
package arch
