package definition

import (
	"errors"
	"unicode/utf8"
)

// errNotUTF8 refuses bytes in another encoding, such as those of a Latin-1 terminal: in JSON they
// would become other characters.
var errNotUTF8 = errors.New("it must be UTF-8")

// textFlag is a flag with UTF-8 text.
type textFlag string

// String implements pflag.Value.
func (f *textFlag) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *textFlag) Type() string { return "string" }

// Set implements pflag.Value.
func (f *textFlag) Set(text string) error {
	if !utf8.ValidString(text) {
		return errNotUTF8
	}
	*f = textFlag(text)
	return nil
}
