package relay

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"adit/internal/nearest"
)

const maxConfigFile = 1 << 20

// Load reads a configuration file over the defaults. A key that it does not
// know is an error that names it.
func Load(path string) (Config, error) {
	cfg := Defaults()
	data, err := os.ReadFile(path)
	if err != nil {
		return cfg, fileError("configuration", path, err)
	}
	if len(data) > maxConfigFile {
		return cfg, fmt.Errorf("the configuration %s is larger than 1 MiB; is it another file?", path)
	}
	text := strings.TrimPrefix(string(data), "\ufeff") // what editors of Windows begin a file with
	dec := toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields()
	if err := dec.Decode(&cfg); err != nil {
		return cfg, configMistake(path, err)
	}
	cfg.from(filepath.Dir(path))
	return cfg, nil
}

// configMistake says where in the file at path what is wrong, and what is meant.
func configMistake(path string, err error) error {
	known := configKeys("", reflect.TypeFor[Config]())
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) && len(unknown.Errors) > 0 {
		first := unknown.Errors[0]
		row, _ := first.Position()
		key, hint := strings.Join(first.Key(), "."), ""
		if like := nearestKey(key, slices.Sorted(maps.Keys(known))); like != "" {
			hint = fmt.Sprintf("; did you mean %q?", like)
		}
		return fmt.Errorf("%s, line %d: there is no key %q%s", path, row, key, hint)
	}
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		row, column := decode.Position()
		text := strings.TrimPrefix(decode.Error(), "toml: ")
		if key := strings.Join(decode.Key(), "."); known[key] != "" && strings.HasPrefix(text, "cannot decode ") {
			return fmt.Errorf("%s, line %d: %s must be %s", path, row, key, known[key])
		}
		return fmt.Errorf("%s, line %d, column %d: this is not TOML: %s", path, row, column, text)
	}
	return fmt.Errorf("read configuration %s: %w", path, err)
}

// configKeys are the keys of a struct, with what their values are in words.
func configKeys(prefix string, of reflect.Type) map[string]string {
	keys := map[string]string{}
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
		if name == "" || name == "-" {
			continue
		}
		t := field.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch t.Kind() {
		case reflect.Struct:
			keys[prefix+name] = "a table, as [" + prefix + name + "]"
			maps.Copy(keys, configKeys(prefix+name+".", t))
		case reflect.Slice:
			keys[prefix+name] = `a list of texts, as ["a", "b"]`
		case reflect.Bool:
			keys[prefix+name] = "true or false"
		case reflect.Int, reflect.Int64:
			keys[prefix+name] = "a whole number, without quotes"
		default:
			keys[prefix+name] = "a text in quotes"
		}
	}
	return keys
}

// nearestKey is the key that was meant: one that is written nearly so, or of the
// same name in another table.
func nearestKey(key string, known []string) string {
	if like := nearest.Of(key, known); like != "" {
		return like
	}
	last := func(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }
	i := slices.IndexFunc(known, func(k string) bool { return last(k) == last(key) })
	if i < 0 {
		return ""
	}
	return known[i]
}

// from makes relative file names relative to the configuration's folder.
func (c *Config) from(dir string) {
	files := []*string{&c.DataDir, &c.TLSCert, &c.TLSKey, &c.PagesDir, &c.NATS.Credentials, &c.NATS.CA, &c.NATS.Cert, &c.NATS.Key, &c.NATS.SecretFile, &c.Geo.Database}
	if c.ACME != nil {
		files = append(files, &c.ACME.CA, &c.ACME.DNS.SecretFile, &c.ACME.DNS.CA)
	}
	for _, p := range files {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
	}
}
