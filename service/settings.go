package service

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"adit/internal/config"
	"adit/internal/textfile"
	"adit/localapi"
	"adit/tunnel/agent"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/link"
)

// settings are the current values and their sources. Except for declared tunnels, they stay in
// effect until the daemon restarts.
type settings struct {
	file                        *config.File
	listen, logLevel, authToken string // authToken only where a daemon starts
	listenFrom                  string
}

func newSettings(d Daemon, file *config.File) *settings {
	s := &settings{file: file, listen: localapi.DefaultListen, listenFrom: "default", logLevel: "info"}
	switch {
	case d.HTTPListen != "":
		s.listen, s.listenFrom = d.HTTPListen, "flag"
	case file.HTTPListen != "":
		s.listen, s.listenFrom = file.HTTPListen, "file"
	}
	if file.Log.Level != "" {
		s.logLevel = file.Log.Level
	}
	return s
}

// maxTokenFile bounds how much of the auth token's file is read.
const maxTokenFile = 4096

// authToken returns the token for an agent that has none; empty if none was supplied.
func (d Daemon) authToken() (string, error) {
	if d.AuthToken != "" {
		return d.AuthToken, nil
	}
	if token := strings.TrimSpace(os.Getenv(envAuthToken)); token != "" {
		return token, nil
	}
	name := os.Getenv(envAuthTokenFile)
	if name == "" {
		return "", nil
	}
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w; name a file that the user of the daemon may read", envAuthTokenFile, err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxTokenFile))
	if err != nil {
		return "", fmt.Errorf("%s: %w; name a file that the user of the daemon may read", envAuthTokenFile, err)
	}
	token, err := textfile.Of(text)
	if err != nil {
		return "", fmt.Errorf("%s: %s: %w", envAuthTokenFile, name, err)
	}
	return strings.TrimSpace(token), nil
}

func (s *settings) bearer() bool {
	return s.file.LocalAPI.BearerToken != "" || s.file.LocalAPI.BearerTokenFile != ""
}

func (s *settings) transport() link.Transport {
	switch s.file.Session.Transport {
	case "dtls":
		return link.DTLS
	case "tls":
		return link.TLS
	}
	return link.Auto
}

func (s *settings) inspect() inspect.Limits {
	in := s.file.Inspector
	if in.Enabled != nil && !*in.Enabled {
		return inspect.Limits{Memory: -1}
	}
	memory := min(int64(in.MemoryMiB)<<20, math.MaxInt) // of 32 bits on some machines
	return inspect.Limits{Memory: int(memory), Body: in.BodyKiB << 10}
}

// list shows the settings; for secrets it only says that they are set.
func (s *settings) list(a *agent.Agent) []localapi.Setting {
	from := func(table, key string) string {
		if s.file.Sets(table, key) {
			return "file"
		}
		return "default"
	}
	f, limits := s.file, s.inspect()
	enabled := limits.Memory >= 0
	out := []localapi.Setting{
		{Key: "http_listen", Value: s.listen, Source: s.listenFrom},
		{Key: "local_api.bearer_token", Value: secretHint(f.LocalAPI.BearerToken != ""), Source: from("local_api", "bearer_token"), Secret: true},
		{Key: "local_api.bearer_token_file", Value: f.LocalAPI.BearerTokenFile, Source: from("local_api", "bearer_token_file")},
		{Key: "local_api.allowed_origins", Value: orEmpty(f.LocalAPI.AllowedOrigins), Source: from("local_api", "allowed_origins")},
		{Key: "local_api.allowed_hosts", Value: orEmpty(f.LocalAPI.AllowedHosts), Source: from("local_api", "allowed_hosts")},
		{Key: "session.transport", Value: cmp.Or(f.Session.Transport, "auto"), Source: from("session", "transport")},
		{Key: "inspector.enabled", Value: enabled, Source: from("inspector", "enabled")},
		{Key: "inspector.memory_mib", Value: cmp.Or(f.Inspector.MemoryMiB, 64), Source: from("inspector", "memory_mib")},
		{Key: "inspector.body_kib", Value: cmp.Or(f.Inspector.BodyKiB, 512), Source: from("inspector", "body_kib")},
		{Key: "log.level", Value: s.logLevel, Source: from("log", "level")},
	}
	auth := a.Auth()
	if auth.Configured {
		out = append(out,
			localapi.Setting{Key: "auth_token", Value: auth.TokenHint, Source: "state", Secret: true},
			localapi.Setting{Key: "relay", Value: auth.Relay, Source: "state"})
	}
	return out
}

func secretHint(set bool) string {
	if set {
		return "set"
	}
	return ""
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
