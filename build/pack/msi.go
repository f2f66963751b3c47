package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// summaryFormat is the FMTID of a summary information stream as bytes
// ({F29F85E0-4FF9-1068-AB91-08002B27B3D9}, [MS-OLEPS] 2.21 and 3.1).
var summaryFormat = []byte{0xe0, 0x85, 0x9f, 0xf2, 0xf9, 0x4f, 0x68, 0x10, 0xab, 0x91, 0x08, 0x00, 0x2b, 0x27, 0xb3, 0xd9}

// steadyFile gives an MSI a package code and time derived from its release, replacing wixl's random
// code and the time of the build.
func steadyFile(file, code string, when time.Time) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := steady(data, code, when); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// steady changes the summary information in place, without changing its length.
func steady(data []byte, code string, when time.Time) error {
	const (
		revision = 9 // the package code
		created  = 12
		saved    = 13

		typeString   = 0x1e
		typeFileTime = 0x40
	)
	at := bytes.Index(data, summaryFormat)
	if at < 28 || bytes.Contains(data[at+1:], summaryFormat) || at+20 > len(data) {
		return errors.New("the installer's summary was not found")
	}
	// The offset is relative to the start of the stream, which is 28 bytes before the format.
	begin := at - 28 + int(binary.LittleEndian.Uint32(data[at+16:]))
	if begin+8 > len(data) || begin < at {
		return errors.New("the installer's summary is cut off")
	}
	count := int(binary.LittleEndian.Uint32(data[begin+4:]))
	if count > 64 || begin+8+8*count > len(data) {
		return errors.New("the installer's summary is cut off")
	}
	changed := 0
	for i := range count {
		entry := data[begin+8+8*i:]
		id, place := binary.LittleEndian.Uint32(entry), begin+int(binary.LittleEndian.Uint32(entry[4:]))
		if place+12 > len(data) || place < begin {
			return errors.New("the installer's summary is cut off")
		}
		kind, value := binary.LittleEndian.Uint32(data[place:]), data[place+4:]
		switch {
		case id == revision && kind == typeString:
			text := "{" + strings.ToUpper(code) + "}"
			size := int(binary.LittleEndian.Uint32(value))
			if size != len(text)+1 || len(value) < 4+size {
				return fmt.Errorf("the installer's package code has %d bytes", size)
			}
			copy(value[4:], text)
		case (id == created || id == saved) && kind == typeFileTime:
			binary.LittleEndian.PutUint64(value, fileTime(when))
		default:
			continue
		}
		changed++
	}
	if changed != 3 {
		return fmt.Errorf("the installer's summary has %d of the 3 values that change", changed)
	}
	return nil
}

// fileTime returns the time in units of 100 ns since 1601.
func fileTime(t time.Time) uint64 {
	const from1601to1970 = 11_644_473_600
	return uint64(t.Unix()+from1601to1970) * 10_000_000
}
