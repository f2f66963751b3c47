package windowed

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"strings"
	"testing"
)

// console is as much of a console program as is read, signed or not.
func console(signed bool) []byte {
	data := make([]byte, 0x400)
	const at = 0x80
	binary.LittleEndian.PutUint32(data[pointerToPE:], at)
	binary.LittleEndian.PutUint16(data[at+optional:], pe32Plus)
	binary.LittleEndian.PutUint16(data[at+subsystem:], pe.IMAGE_SUBSYSTEM_WINDOWS_CUI)
	binary.LittleEndian.PutUint32(data[at+directories:], 16)
	if signed {
		binary.LittleEndian.PutUint32(data[at+checksum:], 0x1234)
		binary.LittleEndian.PutUint32(data[at+certificate:], uint32(len(data)))
		binary.LittleEndian.PutUint32(data[at+certificate+4:], 16)
		data = append(data, bytes.Repeat([]byte{'s'}, 16)...)
	}
	return data
}

func TestProgramDiffersByItsKindAlone(t *testing.T) {
	before := console(false)
	got, err := Program(before)
	if err != nil {
		t.Fatal(err)
	}
	want := console(false)
	want[0x80+subsystem] = pe.IMAGE_SUBSYSTEM_WINDOWS_GUI
	if !bytes.Equal(got, want) || !bytes.Equal(before, console(false)) {
		t.Error("more has changed than the kind of program, or what was given has")
	}
	signed, err := Program(console(true))
	if err != nil || !bytes.Equal(signed, want) {
		t.Errorf("a signed program: got %d bytes, %v, want the %d of one that never was", len(signed), err, len(want))
	}
}

func TestWhatIsNoConsoleProgramIsRefused(t *testing.T) {
	windows := console(false)
	windows[0x80+subsystem] = pe.IMAGE_SUBSYSTEM_WINDOWS_GUI
	appended := append(console(true), "and more"...)
	for want, data := range map[string][]byte{
		"not a Windows program":       bytes.Repeat([]byte{0xff}, 0x400),
		"not a console program":       windows,
		"signature is not at its end": appended,
	} {
		if _, err := Program(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for size := range 0x200 {
		_, _ = Program(console(false)[:size]) // which must not panic
	}
}
