package visible

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextShowsWhatIsThere(t *testing.T) {
	for in, want := range map[string]string{
		"":                                    "",
		"/shop?q=1":                           "/shop?q=1",
		"/café/店/магазин/חנות":                "/café/店/магазин/חנות", // letters of a script that runs leftwards are letters
		"a b\u00a0c\u3000d":                   "a b\u00a0c\u3000d",
		"😀 ok":                                "😀 ok",
		"\x1b[2J\r\n\x07\u009b31m\x7f":        "·[2J····31m·",
		"invoice\u202efdp.exe":                `invoice\u202efdp.exe`,
		"\u202aa\u202b\u202c\u202d":           `\u202aa\u202b\u202c\u202d`,
		"\u2066a\u2067\u2068\u2069":           `\u2066a\u2067\u2068\u2069`,
		"ad\u200bmin\u200c\u200d\u200e\u200f": `ad\u200bmin\u200c\u200d\u200e\u200f`,
		"\ufeffa\u00adb\u061cc\u2060":         `\ufeffa\u00adb\u061cc\u2060`,
		"a\u2028b\u2029c":                     `a\u2028b\u2029c`,
		"a\U000e0041\U000e007f\U000e0101":     `a\U000e0041\U000e007f\U000e0101`,
		"a\u3164\u115f\u034f\uffa0\u180e":     `a\u3164\u115f\u034f\uffa0\u180e`,
		"cut\xff":                             "cut\uFFFD",
		"cut\xff\n":                           "cut\uFFFD·",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzTextIsSeen(f *testing.F) {
	f.Add("a\u202eb\x1b[0m\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		if !utf8.ValidString(got) || strings.IndexFunc(got, Hidden) >= 0 {
			t.Errorf("%q: got %q, of which a part cannot be seen", s, got)
		}
		if Text(got) != got {
			t.Errorf("%q: shown twice it is %q, once %q", s, Text(got), got)
		}
	})
}

func TestClipCutsBetweenCharacters(t *testing.T) {
	for in, want := range map[string]string{"": "", "four": "four", "fiver": "five…", "語語": "語…", "abc語": "abc…", "\xff\xff\xff\xff\xff": "\xff\xff\xff\xff…"} {
		if got := Clip(in, 4); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestLinesStay(t *testing.T) {
	if got, want := Lines("a\tb\r\n\x1b[2J\n"), "a    b\n·[2J\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
