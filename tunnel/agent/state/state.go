// Package state is the folder in which the agent keeps what must outlive it: the token and the data
// of its session in auth.json, the tunnels and what the relay gave them in tunnels.json. It is
// files in, values out, and each file is replaced as a whole. A file that cannot be read is put
// aside, and one written by a later adit is left alone. When to save is left to package agent.
package state

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
	"adit/internal/lockfile"
	"adit/tunnel/agent/definition"
	"adit/tunnel/wire"
)

// The state folder's files.
const (
	authFile    = "auth.json"
	tunnelsFile = "tunnels.json"
	lockName    = "agent.lock"
)

// Versions of the files' schemas. A file written by a later adit is left alone.
const (
	authVersion    = 1
	tunnelsVersion = 1
)

const maxStateFile = 64 << 20

// Auth is auth.json: the token and the data of its session.
type Auth struct {
	Version      int       `json:"version"`
	Instance     string    `json:"instance"` // random, once per state folder
	Paused       bool      `json:"paused,omitempty"`
	Token        string    `json:"auth_token,omitempty"`
	ClientID     string    `json:"client_id,omitempty"` // what the person bound the agent to
	ConfiguredAt time.Time `json:"configured_at,omitzero"`
	// Addresses are where the relay has moved, or where its nodes are. AddressesOf identifies that
	// relay by its authority's fingerprint.
	Addresses   []string `json:"addresses,omitempty"`
	AddressesOf string   `json:"addresses_of,omitempty"`
	// GivenBy identifies, in the same way as AddressesOf, the relay to which the grants and
	// releases in tunnels.json belong. It outlives the token: whoever logs in there again still
	// owes the releases.
	GivenBy string `json:"given_by,omitempty"`
}

// FingerprintOf tells relays apart by what their tokens trust; "" without a token.
func FingerprintOf(t wire.Token) string {
	if t.Fingerprint == [32]byte{} {
		return ""
	}
	return hex.EncodeToString(t.Fingerprint[:])
}

// Tunnels is tunnels.json.
type Tunnels struct {
	Version int      `json:"version"`
	Tunnels []Tunnel `json:"tunnels"`
	// Granted is what the relay gave declared tunnels, by tunnel id.
	Granted map[string]Grant `json:"granted,omitempty"`
	// Releases are claims to give back once there is a session.
	Releases []string `json:"releases,omitempty"`
}

// Without returns v without anything that a relay gave.
func (v Tunnels) Without() Tunnels {
	v.Granted, v.Releases = nil, nil
	v.Tunnels = slices.Clone(v.Tunnels)
	for i := range v.Tunnels {
		v.Tunnels[i].Granted = Grant{}
	}
	return v
}

// Tunnel is one tunnel of tunnels.json.
type Tunnel struct {
	ID        string            `json:"id"`
	CreatedAt time.Time         `json:"created_at"`
	Stopped   bool              `json:"stopped,omitempty"`
	Spec      definition.Tunnel `json:"spec"`
	Granted   Grant             `json:"granted,omitzero"`
}

// mend gives tunnels new ids if a file that a person has edited, perhaps by copying a tunnel, lacks
// an id, has one that is not valid in the API's paths, or has one twice, in which case the second
// tunnel would replace the first. It returns how many ids it changed. What the relay gave belongs
// to the first tunnel.
func (v *Tunnels) mend() (mended int) {
	seen := make(map[string]bool, len(v.Tunnels))
	for i := range v.Tunnels {
		t := &v.Tunnels[i]
		if !isID(t.ID) || seen[t.ID] {
			t.ID, t.Granted = NewID("tun_"), Grant{}
			mended++
		}
		seen[t.ID] = true
	}
	return mended
}

// isID reports whether id is valid as a tunnel's id.
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

// maxID limits the length of ids; a relay truncates longer ones.
const maxID = 64

// Folder is a state folder, and has one owner at a time. Its methods must not be called
// concurrently.
type Folder struct {
	dir  string
	lock *lockfile.Lock
	// Write replaces a file. Open sets it to atomicfile.Write.
	Write func(path string, data []byte, perm fs.FileMode) error
}

// Open creates the folder if needed, and owns it until Close. It removes what interrupted writes
// have left behind.
func Open(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("make the state folder: %w", err) // whose it is to be, the daemon says
	} else if errors.Is(err, fs.ErrExist) { // which a folder or a file would not say
		return nil, fmt.Errorf("the state folder %s is a link that leads nowhere; remove it, or name another folder with ADIT_STATE_DIR", dir)
	} else if err != nil {
		return nil, fmt.Errorf("make the state folder: %w; name another folder with ADIT_STATE_DIR", err)
	}
	lock, err := lockfile.Take(filepath.Join(dir, lockName))
	if errors.Is(err, lockfile.ErrHeld) {
		return nil, fmt.Errorf("the state folder %s: %w; stop that adit first, or name another folder with ADIT_STATE_DIR", dir, lockfile.ErrHeld)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("open the state folder: %w", err) // as above
	}
	if err != nil {
		return nil, fmt.Errorf("nothing can be kept in the state folder %s: %w; mend that, or name another folder with ADIT_STATE_DIR", dir, withoutPath(err))
	}
	f := &Folder{dir: dir, lock: lock, Write: atomicfile.Write}
	for _, name := range []string{authFile, tunnelsFile} {
		atomicfile.Sweep(f.path(name))
	}
	return f, nil
}

// withoutPath returns err for a sentence that contains the path already.
func withoutPath(err error) error {
	if at := new(fs.PathError); errors.As(err, &at) {
		return at.Err
	}
	return err
}

// Close releases the folder.
func (f *Folder) Close() error { return f.lock.Release() }

func (f *Folder) path(name string) string { return filepath.Join(f.dir, name) }

// Saved is the content of the folder.
type Saved struct {
	Auth    Auth
	Tunnels Tunnels
	// Notices say which files were put aside, and why.
	Notices []string
	// Mended is how many tunnels had no id of their own and were given new ones, which are not
	// saved yet.
	Mended int
}

// Load reads the files. Missing files count as empty, except for Auth.Instance, which is generated.
func (f *Folder) Load() (Saved, error) {
	var v Saved
	var kept *aside
	err := f.load(authFile, authVersion, &v.Auth)
	switch {
	case errors.As(err, &kept):
		v.Notices = append(v.Notices, kept.Error())
		v.Auth = Auth{}
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return Saved{}, err
	}
	if v.Auth.Instance == "" {
		v.Auth.Instance = NewID("")
	}
	v.Auth.Version = authVersion
	err = f.load(tunnelsFile, tunnelsVersion, &v.Tunnels)
	switch {
	case errors.As(err, &kept):
		v.Notices = append(v.Notices, kept.Error())
		v.Tunnels = Tunnels{}
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return Saved{}, err
	}
	v.Mended = v.Tunnels.mend()
	return v, nil
}

// aside returns the error about a file that could not be read and was put aside.
type aside struct {
	path, kept string
	cause      error
}

func (e *aside) Error() string {
	return fmt.Sprintf("%s does not read (%v); it was kept as %s and adit began without it", e.path, e.cause, e.kept)
}

func (f *Folder) load(name string, version int, v any) error {
	path := f.path(name)
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

// noState returns why something is not a state file of any adit, and can be put aside.
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

// SaveAuth replaces auth.json.
func (f *Folder) SaveAuth(v Auth) error {
	v.Version = authVersion
	return f.save(authFile, v)
}

// SaveTunnels replaces tunnels.json.
func (f *Folder) SaveTunnels(v Tunnels) error {
	v.Version = tunnelsVersion
	return f.save(tunnelsFile, v)
}

func (f *Folder) save(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return f.Write(f.path(name), append(data, '\n'), 0o600)
}

// trial is how much Try writes: a full disk still has room for a file's name, and often for a few
// bytes in it.
const trial = 64 << 10

// Try writes a file to the folder in the same way as the others, through to the disk, and removes
// it again.
func (f *Folder) Try() error {
	file, err := os.CreateTemp(f.dir, ".check.*.tmp")
	if err != nil {
		return err
	}
	err = file.Close()
	if err == nil {
		// No holes, and nothing that a file system could compress away.
		data := make([]byte, trial)
		_, _ = rand.Read(data) // it never fails
		err = f.Write(file.Name(), data, 0o600)
	}
	return errors.Join(err, os.Remove(file.Name()))
}

// NewID returns prefix followed by 80 random bits.
func NewID(prefix string) string {
	var b [10]byte
	rand.Read(b[:])
	return prefix + hex.EncodeToString(b[:])
}
