package macpkg

import (
	"bytes"
	"debug/macho"
	"encoding/binary"
	"fmt"
)

// fatAlign is the alignment of the slices, as a power of two: 16 KiB, the page
// of Apple's own processors.
const fatAlign = 14

// Universal joins executables for several processors into one (mach-o/fat.h). The slices remain
// unchanged, including their signatures.
func Universal(slices ...[]byte) ([]byte, error) {
	header := binary.BigEndian.AppendUint32(nil, macho.MagicFat)
	header = binary.BigEndian.AppendUint32(header, uint32(len(slices)))
	at := uint32(1 << fatAlign)
	var offsets []uint32
	for i, slice := range slices {
		f, err := macho.NewFile(bytes.NewReader(slice))
		if err != nil {
			return nil, fmt.Errorf("slice %d: %w", i, err)
		}
		for _, n := range []uint32{uint32(f.Cpu), f.SubCpu, at, uint32(len(slice)), fatAlign} {
			header = binary.BigEndian.AppendUint32(header, n)
		}
		offsets = append(offsets, at)
		at += (uint32(len(slice)) + 1<<fatAlign - 1) &^ (1<<fatAlign - 1)
	}
	if len(slices) == 0 {
		return nil, fmt.Errorf("no executables to join")
	}
	last := len(slices) - 1
	out := make([]byte, int(offsets[last])+len(slices[last]))
	copy(out, header)
	for i, slice := range slices {
		copy(out[offsets[i]:], slice)
	}
	return out, nil
}
