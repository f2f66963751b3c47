package cli

import (
	"slices"
	"testing"
)

func TestArgsFollowTheProgramsName(t *testing.T) {
	for _, tt := range []struct{ argv, want []string }{
		{[]string{"/usr/bin/adit", "status"}, []string{"status"}},
		{[]string{"/usr/bin/adit"}, nil},
		{[]string{`C:\Program Files\Adit\adit-tray.exe`}, []string{"tray"}},
		{[]string{`C:\Program Files\Adit\Adit-Tray.exe`, "--open"}, []string{"tray", "--open"}},
		{[]string{`C:\Program Files\Adit\adit.exe`, "service", "stop"}, []string{"service", "stop"}},
		{[]string{"/Applications/Adit.app/Contents/MacOS/adit"}, []string{"tray", "--open"}},
		{[]string{"/Applications/Adit.app/Contents/MacOS/adit", "-psn_0_12345"}, []string{"tray", "--open"}},
		{[]string{"/Applications/Adit.app/Contents/MacOS/adit", "start"}, []string{"start"}},
		{nil, nil},
	} {
		if got := Args(tt.argv); !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.argv, got, tt.want)
		}
	}
}
