package localapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"adit/tunnel/agent"
	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/diagnosis"
	"adit/tunnel/agent/feed"
	"adit/tunnel/agent/inspect"
)

// Agent is everything that the API needs from the client engine; *agent.Agent implements it.
type Agent interface {
	AuthKeeper
	StatusTeller
	SessionKeeper
	TunnelLister
	TunnelChanger
	TunnelSwitch
	TunnelHolder
	PolicyKeeper
	Visitor
	Inspector
	Archive
	Doctor
}

// AuthKeeper keeps the auth token.
type AuthKeeper interface {
	Auth() agent.AuthStatus
	Configure(ctx context.Context, token, clientID string) (agent.AuthStatus, error)
	Forget(ctx context.Context) error
}

// StatusTeller reports the agent's status.
type StatusTeller interface {
	Status() agent.Status
	Endpoints() []agent.Endpoint
}

// SessionKeeper keeps the session with the relay.
type SessionKeeper interface {
	Pause(ctx context.Context) (agent.Status, error)
	Resume(ctx context.Context) (agent.Status, error)
	Reconnect(ctx context.Context) (agent.Status, error)
}

// TunnelLister shows tunnels.
type TunnelLister interface {
	Tunnels() []agent.Tunnel
	Tunnel(id string) (agent.Tunnel, bool)
}

// TunnelChanger makes, changes and removes tunnels.
type TunnelChanger interface {
	Create(ctx context.Context, spec definition.Tunnel) (agent.Tunnel, error)
	Change(ctx context.Context, id string, patch definition.Patch) (agent.Tunnel, error)
	DeleteTunnel(ctx context.Context, id string) error
}

// TunnelSwitch starts and stops tunnels.
type TunnelSwitch interface {
	StartTunnel(ctx context.Context, id string) (agent.Tunnel, error)
	StopTunnel(ctx context.Context, id string) (agent.Tunnel, error)
}

// TunnelHolder holds tunnels that are deleted when nobody holds them.
type TunnelHolder interface {
	Hold(id string) (agent.Hold, error)
}

// PolicyKeeper reads and sets who may visit a tunnel.
type PolicyKeeper interface {
	Policy(ctx context.Context, id string) (agent.TunnelPolicy, error)
	SetPolicy(ctx context.Context, id string, document json.RawMessage, expected http.Header) (agent.TunnelPolicy, error)
}

// Inspector shows and replays recorded requests.
type Inspector interface {
	Requests(f inspect.Filter) []inspect.Summary
	Request(id string, reveal bool) (inspect.Detail, bool)
	Replay(ctx context.Context, id string, edit inspect.Edit) (inspect.Detail, error)
}

// Archive exports, imports and clears recorded requests.
type Archive interface {
	ClearRequests()
	WriteHAR(w io.Writer, f inspect.Filter, reveal bool) error
	ReadHAR(r io.Reader) (int, error)
}

// Doctor diagnoses what a session needs, and measures the speed of its path.
type Doctor interface {
	Diagnose(ctx context.Context) []diagnosis.Check
	MeasureSpeed(ctx context.Context) (diagnosis.Speeds, error)
}

// Feed is one reader's position in the event feed.
type Feed interface {
	// Next waits for the next event, or returns ctx's error if ctx ends first; no event is lost in
	// that case.
	Next(ctx context.Context) (feed.Event, error)
	// Last returns the id of the newest event at the time the feed began, until Next is called.
	Last() uint64
}

// Configuration is the current configuration, without secrets.
type Configuration struct {
	ConfigFile       string       `json:"config_file"`
	ConfigFileExists bool         `json:"config_file_exists"`
	StateDir         string       `json:"state_dir"`
	Settings         []Setting    `json:"settings"`
	Error            *ConfigError `json:"error,omitempty"` // the file's mistake; its tunnels change once it is mended
}

// Setting is one current value.
type Setting struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Source string `json:"source"` // default, file, environment, flag, state
	Secret bool   `json:"secret,omitempty"`
}

// ConfigError is a mistake in the configuration file.
type ConfigError struct {
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
	Key     string `json:"key,omitempty"`
}
