// Package config reads adit.toml, the file in which a person says how the
// daemon should be. adit never writes it. What a tunnel's values may be is left
// to the agent; this package knows the keys, and where in the file they are.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"adit/internal/portrange"
	"adit/internal/textfile"
	"adit/internal/tomltext"
)

// Name is the file's name in the configuration folder.
const Name = "adit.toml"

const (
	maxFile    = 1 << 20
	maxTunnels = 1000
)

// File is adit.toml. Zero values stand for the defaults.
type File struct {
	HTTPListen string    `toml:"http_listen"`
	LocalAPI   LocalAPI  `toml:"local_api"`
	Session    Session   `toml:"session"`
	Inspector  Inspector `toml:"inspector"`
	Log        Log       `toml:"log"`
	Tunnels    []Tunnel  `toml:"tunnel"`
	Visits     []Visit   `toml:"visit"`

	path string
	text []byte
}

// LocalAPI protects the local API.
type LocalAPI struct {
	BearerToken     string   `toml:"bearer_token"`
	BearerTokenFile string   `toml:"bearer_token_file"`
	AllowedOrigins  []string `toml:"allowed_origins"`
	AllowedHosts    []string `toml:"allowed_hosts"`
}

// Session says how the relay is reached.
type Session struct {
	// Transport is auto (also if empty), dtls or tls.
	Transport string `toml:"transport"`
}

// Inspector bounds the traffic inspector.
type Inspector struct {
	// Enabled is true if nil.
	Enabled *bool `toml:"enabled"`
	// MemoryMiB is what all entries together may hold. If zero, 64.
	MemoryMiB int `toml:"memory_mib"`
	// BodyKiB is what is kept of one body. If zero, 512.
	BodyKiB int `toml:"body_kib"`
}

// Log says how much the daemon tells.
type Log struct {
	// Level is debug, info (also if empty), warn or error.
	Level string `toml:"level"`
}

// Tunnel is a declared tunnel; the keys are those of the local API.
type Tunnel struct {
	Name        string `toml:"name"`
	Type        string `toml:"type"`
	Mode        string `toml:"mode"`
	LocalIP     string `toml:"local_ip"`
	LocalPort   int    `toml:"local_port"`
	LocalScheme string `toml:"local_scheme"`
	Domain      string `toml:"domain"`
	RemotePort  int    `toml:"remote_port"`
	// Ports is how many ports there are from LocalPort on, and from RemotePort on if
	// that is set, each with a tunnel of its own; zero is one without more.
	Ports      int    `toml:"ports"`
	HostHeader string `toml:"host_header"`
	// Fields by name; an empty value removes one.
	RequestHeaders  map[string]string `toml:"request_headers"`
	ResponseHeaders map[string]string `toml:"response_headers"`
	Paths           []Path            `toml:"paths"`
	Visitors        []string          `toml:"visitors"`
	ProxyProtocol   string            `toml:"proxy_protocol"`
	Inspect         *bool             `toml:"inspect"`
}

// Visit is an address on this machine that leads to a private tunnel.
type Visit struct {
	Tunnel string `toml:"tunnel"` // CLIENT/NAME
	Listen string `toml:"listen"` // a port, or a loopback address with one
}

// Path is a path of a declared tunnel that leads to a local service of its own.
type Path struct {
	Path        string `toml:"path"`
	LocalIP     string `toml:"local_ip"`
	LocalPort   int    `toml:"local_port"`
	LocalScheme string `toml:"local_scheme"`
	HostHeader  string `toml:"host_header"`
	Strip       bool   `toml:"strip"`
}

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

// Load reads the file in the configuration folder dir. There being none is no
// error: all has its default then.
func Load(dir string) (*File, error) {
	path := filepath.Join(dir, Name)
	f, err := open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &File{path: path}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if len(text) > maxFile {
		return nil, &Error{Path: path, Message: fmt.Sprintf("it is larger than %d bytes", maxFile)}
	}
	return Parse(path, text)
}

// open opens the file at path. What is there and is no file that can be read is
// not taken for none: without what protects it the local API would be open.
func open(path string) (*os.File, error) {
	info, err := os.Stat(path) // before it is opened: a pipe waits for a writer
	if err == nil && !info.Mode().IsRegular() {
		return nil, &Error{Path: path, Message: "it is not a file: put the configuration in its place, or nothing"}
	}
	if errors.Is(err, fs.ErrNotExist) {
		if target, linkErr := os.Readlink(path); linkErr == nil {
			return nil, &Error{Path: path, Message: fmt.Sprintf("it is a link to %s, which is not there: put the file there, or remove the link", target)}
		}
	}
	if err != nil {
		return nil, unreadable(err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(err)
	}
	return f, nil
}

func unreadable(err error) error {
	hint := ""
	if errors.Is(err, fs.ErrPermission) {
		hint = ": let the user that runs adit read it and its folder"
	}
	return fmt.Errorf("read the configuration: %w%s", err, hint)
}

// Parse reads text as the file at path.
func Parse(path string, text []byte) (*File, error) {
	plain, err := textfile.Of(text)
	if err != nil {
		return nil, &Error{Path: path, Message: err.Error()}
	}
	file := &File{path: path, text: []byte(plain)}
	dec := toml.NewDecoder(strings.NewReader(plain))
	dec.DisallowUnknownFields()
	if err := dec.Decode(file); err != nil {
		return nil, file.decodeError(err)
	}
	if err := file.validate(); err != nil {
		return nil, err
	}
	return file, nil
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

func (f *File) validate() error {
	if f.HTTPListen != "" {
		host, port, err := net.SplitHostPort(f.HTTPListen)
		if err != nil {
			return f.Mistake("", -1, "http_listen", "must be host:port")
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n > 65535 || strings.ContainsAny(host, " /") {
			return f.Mistake("", -1, "http_listen", "must be host:port")
		}
	}
	if f.LocalAPI.BearerToken != "" && f.LocalAPI.BearerTokenFile != "" {
		return f.Mistake("local_api", -1, "bearer_token_file", "excludes bearer_token")
	}
	for _, origin := range f.LocalAPI.AllowedOrigins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
			return f.Mistake("local_api", -1, "allowed_origins", fmt.Sprintf("%q must be scheme://host or scheme://host:port", origin))
		}
	}
	for _, host := range f.LocalAPI.AllowedHosts {
		if host == "" || strings.ContainsAny(host, "/@* \t") {
			return f.Mistake("local_api", -1, "allowed_hosts", fmt.Sprintf("%q must be a name, or name:port", host))
		}
	}
	if !slices.Contains([]string{"", "auto", "dtls", "tls"}, f.Session.Transport) {
		return f.Mistake("session", -1, "transport", "must be auto, dtls or tls")
	}
	if !slices.Contains([]string{"", "debug", "info", "warn", "error"}, f.Log.Level) {
		return f.Mistake("log", -1, "level", "must be debug, info, warn or error")
	}
	if n := f.Inspector.MemoryMiB; n < 0 || n > 4096 {
		return f.Mistake("inspector", -1, "memory_mib", "must be 1 to 4096")
	}
	if n := f.Inspector.BodyKiB; n < 0 || n > 64<<10 {
		return f.Mistake("inspector", -1, "body_kib", "must be 1 to 65536")
	}
	return f.validateTunnels()
}

func (f *File) validateTunnels() error {
	if len(f.Tunnels) > maxTunnels {
		return f.Mistake("tunnel", maxTunnels, "", fmt.Sprintf("there must be at most %d", maxTunnels))
	}
	names, all := map[string]bool{}, 0
	for i, t := range f.Tunnels {
		all += max(t.Ports, 1)
		switch {
		case t.Name == "":
			return f.Mistake("tunnel", i, "name", "is missing: a declared tunnel is known by it")
		case names[t.Name]:
			return f.Mistake("tunnel", i, "name", fmt.Sprintf("another tunnel is called %q already", t.Name))
		case t.Ports < 0 || t.Ports > portrange.Most:
			return f.Mistake("tunnel", i, "ports", fmt.Sprintf("must be 1 to %d", portrange.Most))
		case t.Ports > 0 && t.Type != "tcp" && t.Type != "udp":
			return f.Mistake("tunnel", i, "ports", "is for tcp and udp tunnels only")
		case t.Ports > 0 && !portrange.Fits(t.Ports, t.LocalPort, t.RemotePort):
			return f.Mistake("tunnel", i, "ports", fmt.Sprintf("are too many: the last one would be beyond %d", portrange.Last))
		case all > maxTunnels:
			return f.Mistake("tunnel", i, "ports", fmt.Sprintf("are too many: there must be at most %d tunnels", maxTunnels))
		}
		names[t.Name] = true
	}
	return nil
}

// Mistake returns the error about key in the table of that name (empty: the top
// of the file), or in the index-th of the tables of that name if index is not
// below zero.
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

// Path is where the file is, or would be.
func (f *File) Path() string { return f.path }

// Exists reports whether there is a file.
func (f *File) Exists() bool { return f.text != nil }

// OpenSecret returns the file that has the Bearer token, if everybody at this
// machine may read it; else nothing.
func (f *File) OpenSecret() string {
	path := f.LocalAPI.BearerTokenFile
	if f.LocalAPI.BearerToken != "" {
		path = f.path
	}
	if path == "" || !tellsModes {
		return ""
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o004 == 0 {
		return ""
	}
	return path
}

// Sets reports whether the file sets key in the table of that name; letters count
// in either case, as they do where the file is read.
func (f *File) Sets(table, key string) bool {
	var all map[string]any
	if toml.Unmarshal(f.text, &all) != nil {
		return false
	}
	if table == "" {
		return has(all, key)
	}
	for name, value := range all {
		if inner, ok := value.(map[string]any); ok && strings.EqualFold(name, table) && has(inner, key) {
			return true
		}
	}
	return false
}

func has(table map[string]any, key string) bool {
	for name := range table {
		if strings.EqualFold(name, key) {
			return true
		}
	}
	return false
}
