package config

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"adit/internal/tomltext"
)

// Error is a mistake in the file.
type Error struct {
	Path    string
	Line    int    // 0 if not known
	Key     string // as tunnel[2].local_port, counted from 0; empty if none is at fault
	Message string
}

func (e *Error) Error() string {
	where := e.Path
	if e.Line > 0 {
		where += ":" + strconv.Itoa(e.Line)
	}
	if e.Key != "" {
		where += ": " + e.Key
	}
	return where + ": " + e.Message
}

// Mistake returns the error about key in the table of that name (empty: the top of the file), or,
// if index is not negative, in the index-th of the tables of that name.
func (f *File) Mistake(table string, index int, key, message string) *Error {
	e := &Error{Path: f.path, Line: f.line(table, index, key), Key: key, Message: message}
	switch {
	case index >= 0:
		e.Key = strings.TrimSuffix(fmt.Sprintf("%s[%d].%s", table, index, key), ".")
	case table != "":
		e.Key = table + "." + key
	}
	return e
}

// line finds where a key is set, or a table of its name within the table begins, or
// else where the table itself does; 0 if none is found.
func (f *File) line(table string, index int, key string) int {
	current, count, begins := "", -1, 0
	for i, text := range strings.Split(string(f.text), "\n") {
		text = strings.TrimSpace(text)
		if strings.HasPrefix(text, "[") && !strings.Contains(text, "=") {
			current = strings.Trim(strings.SplitN(text, "#", 2)[0], "[] \t")
			if strings.EqualFold(current, table) {
				if count++; index < 0 || count == index {
					begins = i + 1
				}
			} else if strings.EqualFold(current, table+"."+key) && (index < 0 || count == index) {
				return i + 1
			}
			continue
		}
		if !strings.EqualFold(current, table) || index >= 0 && count != index {
			continue
		}
		if name, _, ok := strings.Cut(text, "="); ok && strings.EqualFold(strings.Trim(name, "\"' \t"), key) {
			return i + 1
		}
	}
	return begins
}

func (f *File) decodeError(err error) error {
	var (
		unknown *toml.StrictMissingError
		wrong   *toml.DecodeError
	)
	switch {
	case errors.As(err, &unknown) && len(unknown.Errors) > 0:
		first := unknown.Errors[0]
		line, _ := first.Position()
		key, message := strings.Join(first.Key(), "."), "there is no such key"
		if like := tomltext.Meant(key, tomltext.Keys(reflect.TypeFor[File]())); like != "" {
			message += fmt.Sprintf("; did you mean %q?", like)
		}
		return &Error{Path: f.path, Line: line, Key: key, Message: message}
	case errors.As(err, &wrong):
		line, _ := wrong.Position()
		message := tomltext.Slip(string(f.text), line, strings.TrimPrefix(wrong.Error(), "toml: "))
		return &Error{Path: f.path, Line: line, Key: strings.Join(wrong.Key(), "."), Message: mismatch(message)}
	}
	return &Error{Path: f.path, Message: err.Error()}
}

// mismatch is the decoder's message in the words of who wrote the file: of a value
// of the wrong kind it tells Go's names.
func mismatch(message string) string {
	kinds := map[string]string{
		"string": "a string, in quotes", "integer": "a whole number", "float": "a number with a fraction", "bool": "true or false", "boolean": "true or false",
		"array": "a list, in brackets", "table": "a table", "inline table": "a table",
		"local date": "a date", "local time": "a time", "local datetime": "a date and time", "datetime": "a date and time",
		"int": "a whole number", "*bool": "true or false", "[]string": "a list of strings, in brackets",
	}
	rest, ok := strings.CutPrefix(message, "cannot decode TOML ")
	got, field, found := strings.Cut(rest, " into struct field ")
	_, want, typed := strings.Cut(field, " of type ")
	if !ok || !found || !typed {
		return message
	}
	is := kinds[want]
	switch {
	case is == "" && strings.HasPrefix(want, "[]"):
		is = "a list of tables"
	case is == "":
		is = "a table"
	}
	if what := kinds[got]; what != "" {
		got = what
	}
	return "must be " + is + ", not " + got
}
