package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"adit/internal/textfile"
)

// Keys of a policy that adit.toml may say in another way than the relay does.
const (
	keyUsers        = "basic_auth"
	keyPassword     = "password"
	keyPasswordFile = "password_file"
)

// maxSecret is how long a password in a file may be, in bytes: more than any is.
const maxSecret = 4096

// PolicyDocument returns the tunnel's policy in the relay's JSON format; nil if there is none.
// Passwords that are in files are read by read, for example [ReadSecret]. The rest of the document
// is for the relay to judge.
func (t Tunnel) PolicyDocument(read func(path string) (string, error)) (json.RawMessage, error) {
	if len(t.Policy) == 0 {
		return nil, nil
	}
	policy := maps.Clone(t.Policy)
	if list, ok := policy[keyUsers].([]any); ok {
		users := make([]any, len(list))
		for i, user := range list {
			filled, err := withPassword(user, read)
			if err != nil {
				return nil, fmt.Errorf("%s[%d].%s: %w", keyUsers, i, keyPasswordFile, err)
			}
			users[i] = filled
		}
		policy[keyUsers] = users
	}
	document, err := json.Marshal(policy)
	if err != nil {
		return nil, errors.New("has something that is not a number")
	}
	return document, nil
}

// withPassword is a user of a policy with the password in place of its file.
func withPassword(user any, read func(string) (string, error)) (any, error) {
	table, ok := user.(map[string]any)
	if !ok || table[keyPasswordFile] == nil {
		return user, nil
	}
	path, ok := table[keyPasswordFile].(string)
	switch {
	case !ok || !filepath.IsAbs(path):
		return nil, errors.New("must be the full path of a file, in quotes")
	case table[keyPassword] != nil:
		return nil, errors.New("excludes password")
	}
	password, err := read(path)
	if err != nil {
		return nil, err
	}
	table = maps.Clone(table)
	delete(table, keyPasswordFile)
	table[keyPassword] = password
	return table, nil
}

// ReadSecret returns the content of the file at path, without its line ending.
func ReadSecret(path string) (string, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a file", path) // a pipe would wait for a writer
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot be read: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", fmt.Errorf("cannot be read: %w", err)
	}
	text, err := textfile.Of(data)
	if err != nil {
		return "", fmt.Errorf("cannot be read: %w", err)
	}
	secret := strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	if secret == "" || len(secret) > maxSecret || strings.ContainsAny(secret, "\r\n") {
		return "", fmt.Errorf("%s must hold one password and nothing else", path)
	}
	return secret, nil
}

// PasswordFiles returns the paths of the files that contain visitors' passwords.
func (f *File) PasswordFiles() []string {
	var paths []string
	for path, own := range f.passwords() {
		if own && filepath.IsAbs(path) && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// OpenPasswords returns a file that contains the password of a tunnel's visitors and that everybody
// at this machine may read, or nothing if there is none.
func (f *File) OpenPasswords() string {
	for path := range f.passwords() {
		if openToAll(path) {
			return path
		}
	}
	return ""
}

// passwords are the files that have passwords of visitors, each with whether it is
// another than f.
func (f *File) passwords() iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		for _, t := range f.Tunnels {
			list, _ := t.Policy[keyUsers].([]any)
			for _, user := range list {
				table, _ := user.(map[string]any)
				path, _ := table[keyPasswordFile].(string)
				own := table[keyPassword] == nil
				if !own {
					path = f.path
				}
				if path != "" && !yield(path, own) {
					return
				}
			}
		}
	}
}

// openToAll reports whether everybody at this machine may read the file at path.
func openToAll(path string) bool {
	if !tellsModes {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&0o004 != 0
}
