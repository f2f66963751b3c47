package tomltext

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"adit/internal/nearest"
)

// Keys returns the keys of a struct, with a description of their values in words. For a string with
// the tag is:"duration" it says that too.
func Keys(of reflect.Type) map[string]string { return keysIn("", of) }

func keysIn(prefix string, of reflect.Type) map[string]string {
	keys := map[string]string{}
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
		if name == "" || name == "-" {
			continue
		}
		name = prefix + name
		t := field.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch t.Kind() {
		case reflect.Struct:
			keys[name] = "a table, as [" + name + "]"
			maps.Copy(keys, keysIn(name+".", t))
		case reflect.Slice:
			keys[name] = `a list of texts, as ["a", "b"]`
			if t.Elem().Kind() == reflect.Struct {
				keys[name] = "a list of tables, as [[" + name + "]]"
				maps.Copy(keys, keysIn(name+".", t.Elem()))
			}
		case reflect.Map:
			keys[name] = `a table of texts, as {Name = "value"}`
		case reflect.Bool:
			keys[name] = "true or false"
		case reflect.Int, reflect.Int64:
			keys[name] = "a whole number, without quotes"
		default:
			keys[name] = "a text in quotes"
			if field.Tag.Get("is") == "duration" {
				keys[name] = `a duration in quotes, as "30s"`
			}
		}
	}
	return keys
}

// Meant returns the key that a person most likely meant by a misspelt one: one with a similar
// spelling, or with the same name in another table; empty if there is none.
func Meant(key string, keys map[string]string) string {
	known := slices.Sorted(maps.Keys(keys))
	if like := nearest.Of(strings.ReplaceAll(key, "-", "_"), known); like != "" {
		return like
	}
	last := func(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }
	i := slices.IndexFunc(known, func(k string) bool { return last(k) == last(key) })
	if i < 0 {
		return ""
	}
	return known[i]
}
