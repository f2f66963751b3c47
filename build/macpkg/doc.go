// Package macpkg writes the formats of a macOS installer package without a Mac:
// universal executables, the cpio archives of payload and scripts, the bill of
// materials, and the xar archive around them. All of it is deterministic.
//
// The formats are described by what Apple's own tools write: mach-o/fat.h, the
// old character format of cpio(5), the BOM store as bom(5) and its known
// readers have it, and xar's own documentation.
package macpkg
