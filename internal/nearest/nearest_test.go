package nearest

import "testing"

// TestNearestWord holds that a slip is understood and a short word not guessed at:
// nearly every one is two slips away from another.
func TestNearestWord(t *testing.T) {
	words := []string{"start", "status", "stop", "tcp", "udp", "list", "delete", "logs", "bash"}
	for typed, want := range map[string]string{
		"sttart": "start", "statsu": "status", "del": "delete", "tpc": "tcp", "udb": "udp", "lst": "list",
		"xyz": "", "": "", "frobnicate": "", "s": "", "ad": "", "bogus": "", "tcsh": "", "dleet": "",
	} {
		if got := Of(typed, words); got != want {
			t.Errorf("Of(%q): got %q, want %q", typed, got, want)
		}
	}
}
