package agent

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"adit/internal/atomicfile"
	"adit/tunnel/agent/spec"
	"adit/tunnel/wire"
)

// The state folder's files.
const (
	authFile    = "auth.json"
	tunnelsFile = "tunnels.json"
	lockName    = "agent.lock"
)

// Versions of the files' schemas. A file of a later adit is not touched.
const (
	authVersion    = 1
	tunnelsVersion = 1
)

const maxStateFile = 64 << 20

// savedAuth is auth.json: the token and what belongs to the session.
type savedAuth struct {
	Version      int       `json:"version"`
	Instance     string    `json:"instance"` // random, once per state folder
	Paused       bool      `json:"paused,omitempty"`
	Token        string    `json:"auth_token,omitempty"`
	ClientID     string    `json:"client_id,omitempty"` // what the person bound the agent to
	ConfiguredAt time.Time `json:"configured_at,omitzero"`
	// Addresses are where the relay moved, or has its nodes, and AddressesOf is
	// that relay: its authority's fingerprint.
	Addresses   []string `json:"addresses,omitempty"`
	AddressesOf string   `json:"addresses_of,omitempty"`
	// GivenBy is the relay, as AddressesOf, whose grants and releases tunnels.json
	// has. It outlives the token: who is logged in there again owes it the same.
	GivenBy string `json:"given_by,omitempty"`
}

// fingerprintOf tells relays apart by what their tokens trust; "" without one.
func fingerprintOf(t wire.Token) string {
	if t.Fingerprint == [32]byte{} {
		return ""
	}
	return hex.EncodeToString(t.Fingerprint[:])
}

// savedTunnels is tunnels.json.
type savedTunnels struct {
	Version int           `json:"version"`
	Tunnels []savedTunnel `json:"tunnels"`
	// Granted has what the relay gave declared tunnels, by tunnel id.
	Granted map[string]grant `json:"granted,omitempty"`
	// Releases are claims to give back as soon as there is a session.
	Releases []string `json:"releases,omitempty"`
}

// without returns v less what a relay gave.
func (v savedTunnels) without() savedTunnels {
	v.Granted, v.Releases = nil, nil
	v.Tunnels = slices.Clone(v.Tunnels)
	for i := range v.Tunnels {
		v.Tunnels[i].Granted = grant{}
	}
	return v
}

type savedTunnel struct {
	ID        string      `json:"id"`
	CreatedAt time.Time   `json:"created_at"`
	Stopped   bool        `json:"stopped,omitempty"`
	Spec      spec.Tunnel `json:"spec"`
	Granted   grant       `json:"granted,omitzero"`
}

// mend gives tunnels new ids where a file that a person has changed, as by copying
// one of them, has none, one that the API's paths cannot have, or one twice: the
// second would take the first one's place. It returns how many those are. What the
// relay gave belongs to the first.
func (v *savedTunnels) mend() (mended int) {
	seen := make(map[string]bool, len(v.Tunnels))
	for i := range v.Tunnels {
		t := &v.Tunnels[i]
		if !isID(t.ID) || seen[t.ID] {
			t.ID, t.Granted = newID("tun_"), grant{}
			mended++
		}
		seen[t.ID] = true
	}
	return mended
}

// isID reports whether id can be a tunnel's.
func isID(id string) bool {
	if id == "" || len(id) > maxID {
		return false
	}
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// maxID bounds ids; a relay cuts what is longer.
const maxID = 64

// grant is what the relay gave a tunnel last.
type grant struct {
	Domain     string `json:"domain,omitempty"`
	RemotePort int    `json:"remote_port,omitempty"`
	PublicURL  string `json:"public_url,omitempty"`
	// Chosen is set if the tunnel asked for this name or port, and not for any.
	Chosen bool `json:"chosen,omitempty"`
	// GivenUp is set if the tunnel is to have another name or port now. The relay
	// has this one for it until it gives the other.
	GivenUp bool `json:"given_up,omitempty"`
}

// store reads and replaces the files of the state folder.
type store struct {
	dir string
	// write is atomicfile.Write; tests let it fail.
	write func(path string, data []byte, perm fs.FileMode) error
}

func newStore(dir string) store { return store{dir: dir, write: atomicfile.Write} }

// sweep removes what writes that were cut have left.
func (s store) sweep() {
	for _, name := range []string{authFile, tunnelsFile} {
		atomicfile.Sweep(filepath.Join(s.dir, name))
	}
}

// aside is the error about a file that could not be read and was put aside.
type aside struct {
	path, kept string
	cause      error
}

func (e *aside) Error() string {
	return fmt.Sprintf("%s does not read (%v); it was kept as %s and adit began without it", e.path, e.cause, e.kept)
}

// loadAuth reads auth.json, and makes one in memory if there is none. An *aside
// comes with a value to go on with.
func (s store) loadAuth() (savedAuth, error) {
	var v savedAuth
	err := s.load(authFile, authVersion, &v)
	if err != nil {
		v = savedAuth{}
	}
	if v.Instance == "" {
		v.Instance = newID("")
	}
	v.Version = authVersion
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return v, err
}

func (s store) loadTunnels() (savedTunnels, error) {
	var v savedTunnels
	err := s.load(tunnelsFile, tunnelsVersion, &v)
	if err != nil {
		v = savedTunnels{}
	}
	v.Version = tunnelsVersion
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return v, err
}

func (s store) load(name string, version int, v any) error {
	path := filepath.Join(s.dir, name)
	data, err := readBounded(path)
	if none := noState(""); err != nil && !errors.As(err, &none) {
		return err
	}
	var head struct {
		Version int `json:"version"`
	}
	if err == nil {
		err = json.Unmarshal(data, &head)
	}
	if mismatch := (*json.UnmarshalTypeError)(nil); errors.As(err, &mismatch) && mismatch.Field == "" {
		err = errors.New("it is not a JSON object") // in place of Go's words for it
	}
	if err == nil && head.Version > version {
		return fmt.Errorf("%s is of a later adit (schema %d, this one knows %d); update adit", path, head.Version, version)
	}
	if err == nil && head.Version < 1 {
		err = errors.New("it names no version")
	}
	if err == nil {
		if err = json.Unmarshal(data, v); err == nil {
			return nil
		}
		if mismatch := (*json.UnmarshalTypeError)(nil); errors.As(err, &mismatch) {
			err = fmt.Errorf("%s is a %s", mismatch.Field, mismatch.Value)
		}
	}
	kept := path + ".corrupt-" + time.Now().UTC().Format("20060102T150405Z")
	if moveErr := os.Rename(path, kept); moveErr != nil {
		return fmt.Errorf("%s does not read (%w) and cannot be put aside: %w", path, err, moveErr)
	}
	return &aside{path: path, kept: kept, cause: err}
}

// noState says why something is no state file of any adit, and can be put aside.
type noState string

func (e noState) Error() string { return string(e) }

func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // to open a pipe may last for ever
		return nil, noState("it is not a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxStateFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxStateFile {
		return nil, noState(fmt.Sprintf("it is larger than %d bytes", maxStateFile))
	}
	return data, nil
}

func (s store) saveAuth(v savedAuth) error       { return s.save(authFile, v) }
func (s store) saveTunnels(v savedTunnels) error { return s.save(tunnelsFile, v) }

func (s store) save(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return s.write(filepath.Join(s.dir, name), append(data, '\n'), 0o600)
}

// newID returns prefix and 80 random bits.
func newID(prefix string) string {
	var b [10]byte
	rand.Read(b[:])
	return prefix + hex.EncodeToString(b[:])
}
