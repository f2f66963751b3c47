// Package config reads adit.toml, the file in which the user configures the daemon. adit never
// writes it. This package knows the keys and their positions in the file; which values are valid
// for a tunnel is left to the agent.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"adit/internal/textfile"
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

// Session says how to reach the relay.
type Session struct {
	// Transport is auto (also if empty), dtls or tls.
	Transport string `toml:"transport"`
}

// Inspector limits the traffic inspector.
type Inspector struct {
	// Enabled is true if nil.
	Enabled *bool `toml:"enabled"`
	// MemoryMiB is how much memory all entries together may use. If zero, 64.
	MemoryMiB int `toml:"memory_mib"`
	// BodyKiB is how much of one body is kept. If zero, 512.
	BodyKiB int `toml:"body_kib"`
}

// Log says how much the daemon logs.
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
	// Ports is how many consecutive ports there are, from LocalPort and, if set, from RemotePort,
	// each with its own tunnel; zero means a single port.
	Ports      int    `toml:"ports"`
	HostHeader string `toml:"host_header"`
	// Fields by name; an empty value removes one.
	RequestHeaders  map[string]string `toml:"request_headers"`
	ResponseHeaders map[string]string `toml:"response_headers"`
	Paths           []Path            `toml:"paths"`
	Visitors        []string          `toml:"visitors"`
	ProxyProtocol   string            `toml:"proxy_protocol"`
	Inspect         *bool             `toml:"inspect"`
	// Policy says who may visit, in the relay's format; see [Tunnel.PolicyDocument].
	Policy map[string]any `toml:"policy"`
}

// Visit is an address on this machine that leads to a private tunnel.
type Visit struct {
	Tunnel string `toml:"tunnel"` // CLIENT/NAME
	Type   string `toml:"type"`   // tcp or udp; empty: tcp
	Listen string `toml:"listen"` // a port, or a loopback address with one
}

// Path is a path of a declared tunnel that leads to its own local service.
type Path struct {
	Path        string `toml:"path"`
	LocalIP     string `toml:"local_ip"`
	LocalPort   int    `toml:"local_port"`
	LocalScheme string `toml:"local_scheme"`
	HostHeader  string `toml:"host_header"`
	Strip       bool   `toml:"strip"`
}

// Load reads the file in the configuration folder dir. A missing file is not an error: all values
// then have their defaults.
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
		return nil, &Error{Path: path, Message: "it is not a file: replace it with the configuration file, or remove it"}
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

// Parse parses text as the content of the file at path.
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

// Path returns where the file is, or would be.
func (f *File) Path() string { return f.path }

// Exists reports whether there is a file.
func (f *File) Exists() bool { return f.text != nil }

// OpenSecret returns the file that contains the Bearer token if everybody at this machine may read
// it, else nothing.
func (f *File) OpenSecret() string {
	path := f.LocalAPI.BearerTokenFile
	if f.LocalAPI.BearerToken != "" {
		path = f.path
	}
	if !openToAll(path) {
		return ""
	}
	return path
}

// Sets reports whether the file sets key in the table of that name. Case is ignored, as it is when
// the file is read.
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
