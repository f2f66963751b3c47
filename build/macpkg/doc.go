// Package macpkg writes the formats of a macOS installer package without needing a Mac: universal
// executables, the cpio archives of the payload and the scripts, the bill of materials, and the xar
// archive around them. All output is deterministic.
//
// The formats follow what Apple's own tools write: mach-o/fat.h, the old character format of
// cpio(5), the BOM store as described by bom(5) and implemented by its known readers, and xar's own
// documentation.
package macpkg
