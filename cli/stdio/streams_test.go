package stdio

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecretsAreReadAsTheyWereMeant: a password with a mark before it that nobody sees
// lets nobody in.
func TestSecretsAreReadAsTheyWereMeant(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	for text, want := range map[string]string{
		"secret": "secret", " secret \r\n": "secret", "\ufeffsecret\r\n": "secret", "two words": "two words",
		"\xff\xfes\x00e\x00": "", "\xfe\xff\x00s\x00e": "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, from := range []string{file, "-"} {
			got, err := New(strings.NewReader(text), io.Discard, io.Discard).Secret(from)
			if got != want || (err == nil) != (want != "") {
				t.Errorf("%q from %s: got %q, %v, want %q", text, from, got, err, want)
			}
			if err != nil && (!strings.Contains(err.Error(), "UTF-8") || !strings.Contains(err.Error(), from)) {
				t.Errorf("%q from %s: the error is %v", text, from, err)
			}
		}
	}
}
