package tomltext

import (
	"errors"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

func TestSlipsAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"a = 1\ndomain = “a.test”":         "typographic quotes",
		"domain = ‘a.test’":                "typographic quotes",
		"domain: a.test":                   "not a colon",
		"domain: \"x=y\"":                  "not a colon",
		"domain = a.test":                  "put the value in quotes",
		"a = 1\nname = my shop # mine":     "put the value in quotes",
		"level = info":                     "put the value in quotes",
		"transport = tls":                  "put the value in quotes",
		"listen = 127.0.0.1:80":            "put the value in quotes",
		"listen = :443":                    "put the value in quotes",
		"idle = 10s":                       "put the value in quotes",
		"name = 我的店":                       "put the value in quotes",
		"hosts = [a.test, b]":              "put each text in quotes",
		"a = 1 2":                          "",
		"a = \"b\" c":                      "",
		"a =":                              "",
		"a = 1\na = 2":                     "",
		"{\"domain\": \"a.test\"}":         "",
		"domain = \"a.test\" # not “this”": "",
	} {
		var into map[string]any
		err := toml.Unmarshal([]byte(text), &into)
		var fault *toml.DecodeError
		if !errors.As(err, &fault) {
			if want != "" || err != nil {
				t.Errorf("%q: got %v", text, err)
			}
			continue
		}
		row, _ := fault.Position()
		parser := strings.TrimPrefix(fault.Error(), "toml: ")
		if got := Slip(text, row, parser); want == "" && got != parser || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q, as the parser says %q", text, got, want, parser)
		}
	}
	if got := Slip("a", 7, "said"); got != "said" {
		t.Errorf("a line that is not there: got %q", got)
	}
}
