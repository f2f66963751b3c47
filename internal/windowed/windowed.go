// Package windowed turns a Windows console program into the same program without a console window:
// only the subsystem field in its header changes.
package windowed

import (
	"debug/pe"
	"encoding/binary"
	"errors"
)

// Places in a program (PE/COFF specification, optional header of PE32+).
const (
	pointerToPE = 0x3c
	optional    = 4 + 20 // after signature and file header
	checksum    = optional + 64
	subsystem   = optional + 68
	directories = optional + 108 // how many there are; eight bytes for each follow
	certificate = directories + 4 + 8*pe.IMAGE_DIRECTORY_ENTRY_SECURITY
	pe32Plus    = 0x20b
)

// Program returns console without a console window. A signature is removed, because it would not
// match the result.
func Program(console []byte) ([]byte, error) {
	if len(console) < pointerToPE+4 {
		return nil, errors.New("not a Windows program")
	}
	at := int64(binary.LittleEndian.Uint32(console[pointerToPE:]))
	if at+certificate+8 > int64(len(console)) {
		return nil, errors.New("not a Windows program")
	}
	data := append([]byte(nil), console...)
	header := data[at:]
	if binary.LittleEndian.Uint16(header[optional:]) != pe32Plus || binary.LittleEndian.Uint16(header[subsystem:]) != pe.IMAGE_SUBSYSTEM_WINDOWS_CUI {
		return nil, errors.New("not a console program")
	}
	binary.LittleEndian.PutUint16(header[subsystem:], pe.IMAGE_SUBSYSTEM_WINDOWS_GUI)
	if binary.LittleEndian.Uint32(header[directories:]) <= pe.IMAGE_DIRECTORY_ENTRY_SECURITY {
		return data, nil
	}
	// The one directory that is told by its place in the file.
	place, size := int64(binary.LittleEndian.Uint32(header[certificate:])), int64(binary.LittleEndian.Uint32(header[certificate+4:]))
	if size == 0 {
		return data, nil
	}
	if place < at+certificate+8 || place+size != int64(len(data)) {
		return nil, errors.New("the program's signature is not at its end")
	}
	clear(header[certificate : certificate+8])
	clear(header[checksum : checksum+4])
	return data[:place], nil
}
