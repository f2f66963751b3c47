// Package arch guards the shape of the source tree: its tests fail if an import runs upwards, or if
// a package has no doc. It has no code.
package arch
