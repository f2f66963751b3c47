package lean

import (
	"fmt"
	"slices"
	"testing"
)

func TestOnlyCleanPagesOfTheProgramAreForgotten(t *testing.T) {
	area := func(where, rights, file, dirty string) string {
		return fmt.Sprintf("%s %s 00000000 08:01 42    %s\nSize: 100 kB\nRss: 80 kB\nPrivate_Dirty: %s kB\nAnonymous: %s kB\nVmFlags: rd mr\n", where, rights, file, dirty, dirty)
	}
	smaps := area("00400000-01400000", "r-xp", "/opt/adit", "0") +
		area("01400000-02400000", "r--p", "/opt/adit", "0") +
		area("02400000-02500000", "r--p", "/opt/adit", "12") + // relocated
		area("02500000-02600000", "rw-p", "/opt/adit", "0") +
		area("7f0000000000-7f0000100000", "r-xp", "/lib/libc.so.6", "0") +
		area("7f0000200000-7f0000300000", "r--p", "/opt/adit.old", "0") +
		"7fff00000000-7fff00021000 rw-p 00000000 00:00 0    [stack]\nPrivate_Dirty: 4 kB\n" +
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n"
	want := []mapping{{0x400000, 0x1400000}, {0x1400000, 0x2400000}}
	if got := cleanMappings([]byte(smaps), "/opt/adit"); !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// TestProgramGoesOnWithoutItsPages would crash if a page could not come back.
func TestProgramGoesOnWithoutItsPages(t *testing.T) {
	for range 3 {
		forgetProgram()
		if got := fmt.Sprintf("%v %q %x", []string{"a"}, "b", 12); got != `[a] "b" c` {
			t.Errorf("got %s", got)
		}
	}
}

func FuzzCleanMappings(f *testing.F) {
	f.Add([]byte("00400000-01400000 r-xp 00000000 08:01 42 /opt/adit\nPrivate_Dirty: 0 kB\n"))
	f.Fuzz(func(t *testing.T, smaps []byte) {
		for _, m := range cleanMappings(smaps, "/opt/adit") {
			if m.start >= m.end {
				t.Errorf("got %x", m)
			}
		}
	})
}
