package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"adit/internal/textfile"
	"adit/internal/tomltext"
	"adit/tunnel/relay/sentence"
)

const maxConfigFile = 1 << 20

// Load reads a configuration file on top of the defaults. An unknown key results in an
// error that names it.
func Load(path string) (Config, error) {
	cfg := Defaults()
	data, err := os.ReadFile(path)
	if err != nil {
		return cfg, sentence.File("configuration", path, err)
	}
	if len(data) > maxConfigFile {
		return cfg, fmt.Errorf("the configuration %s is larger than 1 MiB; is it another file?", path)
	}
	text, err := textfile.Of(data)
	if err != nil {
		return cfg, fmt.Errorf("the configuration %s: %w", path, err)
	}
	dec := toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields()
	if err := dec.Decode(&cfg); err != nil {
		return cfg, configMistake(path, text, err)
	}
	cfg.from(filepath.Dir(path))
	return cfg, nil
}

// configMistake says where in the file at path the mistake is, and what is probably
// meant.
func configMistake(path, text string, err error) error {
	known := tomltext.Keys(reflect.TypeFor[Config]())
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) && len(unknown.Errors) > 0 {
		first := unknown.Errors[0]
		row, _ := first.Position()
		key, hint := strings.Join(first.Key(), "."), ""
		if like := tomltext.Meant(key, known); like != "" {
			hint = fmt.Sprintf("; did you mean %q?", like)
		}
		return fmt.Errorf("%s, line %d: there is no key %q%s", path, row, key, hint)
	}
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		row, column := decode.Position()
		fault := strings.TrimPrefix(decode.Error(), "toml: ")
		if key := strings.Join(decode.Key(), "."); known[key] != "" && strings.HasPrefix(fault, "cannot decode ") {
			return fmt.Errorf("%s, line %d: %s must be %s", path, row, key, known[key])
		}
		// The second message is for numbers beyond 32 bits, on a system with 32-bit
		// integers.
		if strings.Contains(fault, "too large to fit") || strings.Contains(fault, "cannot be stored in") {
			return fmt.Errorf("%s, line %d, column %d: this number is too large here; write a smaller one", path, row, column)
		}
		return fmt.Errorf("%s, line %d, column %d: this is not TOML: %s", path, row, column, tomltext.Slip(text, row, fault))
	}
	return fmt.Errorf("read configuration %s: %w", path, err)
}

// from resolves relative file names against the configuration's folder.
func (c *Config) from(dir string) {
	files := []*string{&c.DataDir, &c.TLSCert, &c.TLSKey, &c.PagesDir, &c.NATS.Credentials, &c.NATS.CA, &c.NATS.Cert, &c.NATS.Key, &c.NATS.SecretFile, &c.Geo.Database}
	if c.ACME != nil {
		files = append(files, &c.ACME.CA, &c.ACME.DNS.SecretFile, &c.ACME.DNS.CA)
	}
	for i := range c.SignIn {
		files = append(files, &c.SignIn[i].ClientSecretFile, &c.SignIn[i].CA)
	}
	for _, p := range files {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
	}
}
