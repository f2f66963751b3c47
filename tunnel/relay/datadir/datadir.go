// Package datadir manages the files in a relay's data folder that are not part of its
// store: the identity of the node, the credentials that its operator signs in with, and
// where commands on the same machine find it.
package datadir

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"adit/internal/atomicfile"
)

// Names of files in the data folder.
const (
	AdminTokenFile = "admin_token"
	RuntimeFile    = "relay-runtime.json"
	// SetupCodeFile contains the code for the first administrator, until there is one.
	SetupCodeFile = "setup_code"
	NodeFile      = "node.json"
	// ResetKeyFile contains the key for HTTP/3's stateless resets, in hexadecimal.
	ResetKeyFile = "quic_reset_key"
	// CAFile is the certificate that visitors must trust if the relay has no public one.
	CAFile = "ca.pem"
)

const (
	adminPrefix = "adit_admin_"
	leastSecret = 16 // characters
)

// Runtime says where a running relay's admin API is, for commands on its machine.
type Runtime struct {
	ConsoleURL string    `json:"console_url"`
	TokenFile  string    `json:"token_file"`
	PID        int       `json:"pid"`
	StartedAt  time.Time `json:"started_at"`
}

// ReadRuntime reads the file that a running relay keeps in its data folder.
func ReadRuntime(dir string) (Runtime, error) {
	var info Runtime
	data, err := os.ReadFile(filepath.Join(dir, RuntimeFile))
	if err != nil {
		return info, err
	}
	if err := json.Unmarshal(data, &info); err != nil {
		return info, fmt.Errorf("read %s: %w", RuntimeFile, err)
	}
	return info, nil
}

// WriteRuntime writes the file through which commands on this machine find the relay.
func WriteRuntime(dir string, info Runtime) (remove func(), err error) {
	path := filepath.Join(dir, RuntimeFile)
	data, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Write(path, append(data, '\n'), 0o644); err != nil {
		return nil, fmt.Errorf("write %s: %w", RuntimeFile, err)
	}
	return func() { os.Remove(path) }, nil
}

// Founded reports whether a relay has run with its data in a folder. If so, the folder
// contains CAFile, which is written once the store has what it must not lose.
func Founded(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, CAFile))
	return err == nil
}

// AdminToken reads the admin token, or creates one.
func AdminToken(dir string) (string, error) {
	path := filepath.Join(dir, AdminTokenFile)
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the admin token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	switch {
	case token == "":
		var secret [32]byte
		rand.Read(secret[:])
		token = adminPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
		if err := WriteAdminToken(dir, token); err != nil {
			return "", err
		}
	case len(token) < leastSecret:
		return "", fmt.Errorf("read the admin token: %s holds fewer than 16 characters; remove it, and the relay makes a new one", path)
	}
	return token, nil
}

// WriteAdminToken replaces the admin token.
func WriteAdminToken(dir, token string) error {
	if err := atomicfile.Write(filepath.Join(dir, AdminTokenFile), []byte(token+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the admin token: %w", err)
	}
	return nil
}

// SetupCode reads the set-up code, or creates one.
func SetupCode(dir string) (string, error) {
	path := filepath.Join(dir, SetupCodeFile)
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the set-up code: %w", err)
	}
	if code := strings.TrimSpace(string(data)); len(code) >= leastSecret {
		return code, nil
	}
	text := rand.Text()
	code := text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:16]
	if err := atomicfile.Write(path, []byte(code+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write the set-up code: %w", err)
	}
	return code, nil
}

// RemoveSetupCode removes the set-up code's file, if it exists.
func RemoveSetupCode(dir string) error {
	if err := os.Remove(filepath.Join(dir, SetupCodeFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// NodeID reads the id of the node from the data folder, or creates one.
func NodeID(dir string) (string, error) {
	path := filepath.Join(dir, NodeFile)
	var saved struct {
		ID string `json:"id"`
	}
	data, err := os.ReadFile(path)
	if err == nil {
		if err = json.Unmarshal(data, &saved); err == nil && len(saved.ID) > 2 && len(saved.ID) <= 64 && !strings.ContainsAny(saved.ID, ".*> \t") {
			return saved.ID, nil
		}
		return "", fmt.Errorf("read %s: it has no node id; remove it, and the node takes a new one", path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	var id [9]byte
	rand.Read(id[:])
	saved.ID = "n_" + hex.EncodeToString(id[:])
	if data, err = json.Marshal(saved); err != nil {
		return "", err
	}
	if err := atomicfile.Write(path, append(data, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	return saved.ID, nil
}

// ResetKey reads the key with which a node tells visitors over HTTP/3 that it no longer
// has their connections, or creates one. Each node has its own key. With a shared one, a
// stranger could make one node end the connections of another (RFC 9000, section 21.11).
func ResetKey(dir string) (key [32]byte, err error) {
	path := filepath.Join(dir, ResetKeyFile)
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return key, fmt.Errorf("read the key of HTTP/3: %w", err)
	}
	if old, err := hex.DecodeString(strings.TrimSpace(string(data))); err == nil && len(old) == len(key) {
		return [32]byte(old), nil
	}
	rand.Read(key[:])
	if err := atomicfile.Write(path, []byte(hex.EncodeToString(key[:])+"\n"), 0o600); err != nil {
		return key, fmt.Errorf("write the key of HTTP/3: %w", err)
	}
	return key, nil
}
