package textfile

import (
	"strings"
	"testing"
)

func TestFilesOfOtherEditors(t *testing.T) {
	if text, err := Of([]byte("\ufeffa = 1\r\n")); err != nil || text != "a = 1\r\n" {
		t.Errorf("with a byte order mark: got %q, %v", text, err)
	}
	for _, data := range []string{"\xff\xfea\x00", "\xfe\xff\x00a"} {
		if _, err := Of([]byte(data)); err == nil || !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("in UTF-16: got %v", err)
		}
	}
}
