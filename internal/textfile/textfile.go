// Package textfile handles what editors and shells add around text that a person saved.
package textfile

import (
	"bytes"
	"errors"
	"strings"
)

// Of returns the text of a file.
func Of(data []byte) (string, error) {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return "", errors.New("it is in UTF-16: save it as UTF-8")
	}
	return strings.TrimPrefix(string(data), "\ufeff"), nil // what editors of Windows begin a file with
}
