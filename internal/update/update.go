// Package update replaces the program with a newer release. A manifest signed with the release key
// names the file, the file is verified before anything uses it, and the old program is restored if
// the daemon does not run well with the new one.
package update

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"adit/internal/atomicfile"
)

// Limits of what is downloaded.
const (
	maxManifest = 64 << 10
	maxProgram  = 256 << 20
)

// Manifest is what a release offers.
type Manifest struct {
	Version string          `json:"version"`
	Files   map[string]File `json:"files"` // by platform, as buildinfo has it: linux/amd64, linux/armv7
}

// File is the program for one platform.
type File struct {
	URL    string `json:"url"` // may be relative to the manifest's
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// ParseKey parses a release's public key: 32 bytes in base64.
func ParseKey(text string) (ed25519.PublicKey, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, errors.New("the update key is not 32 bytes in base64")
	}
	return key, nil
}

// Parse verifies and parses a manifest. The signature is 64 bytes in base64, by Ed25519 over the
// manifest as it is.
func Parse(data, signature []byte, key ed25519.PublicKey) (Manifest, error) {
	sig, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(signature)))
	if err != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, data, sig) {
		return Manifest{}, errors.New("the update's manifest is not signed by the configured key")
	}
	var m Manifest
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return Manifest{}, fmt.Errorf("read the update's manifest: %w", err)
	}
	if _, _, ok := split(m.Version); !ok {
		return Manifest{}, fmt.Errorf("read the update's manifest: version %q is none", m.Version)
	}
	return m, nil
}

// Newer reports whether offered is a later release than current. An invalid version, such as that
// of a build from a working tree, is older than any.
func Newer(offered, current string) bool {
	o, oPre, ok := split(offered)
	if !ok {
		return false
	}
	c, cPre, ok := split(current)
	if !ok {
		return true
	}
	for i := range o {
		if o[i] != c[i] {
			return o[i] > c[i]
		}
	}
	if oPre == "" || cPre == "" {
		return oPre == "" && cPre != ""
	}
	return comparePre(oPre, cPre) > 0
}

// comparePre compares what comes behind a release's numbers (Semantic Versioning
// 2.0.0, section 11.4): part by part, numbers by value and before words, and the
// shorter before the longer.
func comparePre(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
		n, xErr := strconv.ParseUint(x, 10, 64)
		m, yErr := strconv.ParseUint(y, 10, 64)
		switch {
		case xErr == nil && yErr == nil:
			return cmp.Compare(n, m)
		case xErr == nil:
			return -1
		case yErr == nil:
			return 1
		}
		return strings.Compare(x, y)
	})
}

func split(version string) (numbers [3]uint64, pre string, ok bool) {
	core, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), "+")
	core, pre, _ = strings.Cut(core, "-")
	parts := strings.Split(core, ".")
	if len(parts) != 3 {
		return numbers, "", false
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 32)
		if err != nil {
			return numbers, "", false
		}
		numbers[i] = n
	}
	return numbers, pre, true
}

// Limits of what somebody waits for at a terminal.
const (
	manifestTime = 30 * time.Second
	stallTime    = 30 * time.Second // without a byte of the program
)

var (
	errLate    = errors.New("the server does not answer in time; try again later, or elsewhere")
	errStalled = errors.New("the server sends no more; try again later, or elsewhere")
)

// Fetch downloads the manifest at address, and its signature at address.sig.
func Fetch(ctx context.Context, c *http.Client, address string, key ed25519.PublicKey) (Manifest, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, manifestTime, errLate)
	defer cancel()
	data, err := get(ctx, c, address, maxManifest)
	if err != nil {
		return Manifest{}, err
	}
	signature, err := get(ctx, c, address+".sig", maxManifest)
	if err != nil {
		return Manifest{}, err
	}
	return Parse(data, signature, key)
}

// get gets at most limit bytes, unless none come for stallTime.
func get(ctx context.Context, c *http.Client, address string, limit int64) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(stallTime, func() { cancel(errStalled) })
	defer stalled.Stop()
	data, err := getMoving(ctx, c, address, limit, func() { stalled.Reset(stallTime) })
	if why := context.Cause(ctx); err != nil && (errors.Is(why, errLate) || errors.Is(why, errStalled)) {
		err = fmt.Errorf("get %s: %w", address, why)
	}
	return data, err
}

// moves is a reader that tells of each read that brings something.
type moves struct {
	io.Reader

	tell func()
}

func (m moves) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if n > 0 {
		m.tell()
	}
	return n, err
}

func getMoving(ctx context.Context, c *http.Client, address string, limit int64, moving func()) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", address, err)
	}
	resp, err := c.Do(req)
	var said *url.Error
	if errors.As(err, &said) { // it would name the address a second time
		err = said.Err
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", address, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: the server says %s", address, resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(moves{resp.Body, moving}, limit+1))
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", address, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("get %s: it has more than %d bytes", address, limit)
	}
	return data, nil
}

// For returns the program for a platform.
func (m Manifest) For(platform string) (File, error) {
	file, ok := m.Files[platform]
	if !ok {
		return File{}, fmt.Errorf("version %s is not offered for %s", m.Version, platform)
	}
	return file, nil
}

// Download downloads the program that the manifest at address offers for a platform, and returns it
// if it matches the manifest.
func Download(ctx context.Context, c *http.Client, address string, m Manifest, platform string) ([]byte, error) {
	file, err := m.For(platform)
	if err != nil {
		return nil, err
	}
	if file.Size <= 0 || file.Size > maxProgram {
		return nil, fmt.Errorf("version %s has %d bytes, and at most %d are taken", m.Version, file.Size, int64(maxProgram))
	}
	base, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the update's address: %w", err)
	}
	ref, err := url.Parse(file.URL)
	if err != nil {
		return nil, fmt.Errorf("the program's address: %w", err)
	}
	data, err := get(ctx, c, base.ResolveReference(ref).String(), file.Size)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	if want := strings.ToLower(file.SHA256); hex.EncodeToString(sum[:]) != want || int64(len(data)) != file.Size {
		return nil, errors.New("the downloaded program is not the one that the manifest names")
	}
	return data, nil
}

// HealthLimit is how long the daemon has to become healthy with a new program.
const HealthLimit = 30 * time.Second

// Replace replaces exe with program and calls restart, which restarts the daemon and returns when
// it is healthy. If it is not, the old program is restored and restarted. If the tray has a program
// of its own next to exe, that is replaced once the daemon is healthy: running trays notice and
// start it.
func Replace(ctx context.Context, exe string, program []byte, restart func(ctx context.Context) error) error {
	Sweep(exe)
	next, err := writeNext(exe, program)
	if err != nil {
		return err
	}
	defer os.Remove(next) // gone already, if all went well
	trayFile, nextTray := tray(exe), ""
	if trayFile != "" {
		data, err := windowedFor(program)
		if err != nil {
			return err
		}
		if nextTray, err = writeNext(trayFile, data); err != nil {
			return err
		}
		defer os.Remove(nextTray)
	}
	// Renamed and not copied: a program that runs may be moved, also on Windows,
	// but not written to.
	old, err := exchange(next, exe)
	if err != nil {
		return err
	}
	trying, cancel := context.WithTimeout(ctx, HealthLimit)
	err = restart(trying)
	cancel()
	if err == nil {
		_ = os.Remove(old) // Windows keeps it while it runs; the next update removes it
		if trayFile == "" {
			return nil
		}
		if old, err = exchange(nextTray, trayFile); err != nil {
			return fmt.Errorf("the new program is in place, but not the tray's: %w", err)
		}
		_ = os.Remove(old)
		return nil
	}
	err = fmt.Errorf("the daemon is not well with the new program: %w", err)
	if backErr := putBack(exe, old); backErr != nil {
		return errors.Join(err, fmt.Errorf("put the old program back: %w; it is %s", backErr, old))
	}
	trying, cancel = context.WithTimeout(context.WithoutCancel(ctx), HealthLimit)
	defer cancel()
	if backErr := restart(trying); backErr != nil {
		return errors.Join(err, fmt.Errorf("restart with the old program: %w", backErr))
	}
	return fmt.Errorf("%w; the old program is back and well", err)
}

// writeNext writes a program beside the one that it is to replace.
func writeNext(exe string, program []byte) (file string, err error) {
	next, err := os.CreateTemp(filepath.Dir(exe), nextPrefix+"*")
	if errors.Is(err, os.ErrPermission) {
		return "", fmt.Errorf("you may not change %s: run this as who owns it, as with sudo", filepath.Dir(exe))
	}
	if err != nil {
		return "", fmt.Errorf("write the new program: %w", err)
	}
	if _, err = next.Write(program); err == nil {
		err = next.Sync()
	}
	if closeErr := next.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = keep(exe, next.Name())
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("write the new program: %w", err), os.Remove(next.Name()))
	}
	return next.Name(), nil
}

// exchange puts the program next in the place of exe, and returns what that is
// called from then on. Where the system and the folder allow it, exe is there at
// every moment: a machine whose power goes has the one program or the other.
func exchange(next, exe string) (old string, err error) {
	old = exe + ".old"
	if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("remove what an earlier update has left: %w", err)
	}
	if canReplace && os.Link(exe, old) == nil {
		if err := atomicfile.Rename(next, exe); err != nil {
			return "", errors.Join(fmt.Errorf("put the new program in place: %w", err), os.Remove(old))
		}
		return old, nil
	}
	if err := atomicfile.Rename(exe, old); err != nil {
		return "", fmt.Errorf("set the old program aside: %w", err)
	}
	if err := atomicfile.Rename(next, exe); err != nil {
		return "", errors.Join(fmt.Errorf("put the new program in place: %w", err), atomicfile.Rename(old, exe))
	}
	return old, nil
}

func putBack(exe, old string) error {
	failed := exe + ".failed"
	_ = os.Remove(failed) // of an earlier try
	if err := atomicfile.Rename(exe, failed); err != nil {
		return err
	}
	if err := atomicfile.Rename(old, exe); err != nil {
		return errors.Join(err, atomicfile.Rename(failed, exe))
	}
	_ = os.Remove(failed) // Windows keeps it while it runs
	return nil
}

// Managed reports whether the file exe is owned by a package manager or an installer, in which case
// it is not ours to replace.
func Managed(exe string) bool {
	if strings.HasPrefix(exe, "/usr/local/Cellar/") {
		return true
	}
	if strings.HasPrefix(exe, "/usr/local/") {
		return false
	}
	for _, dir := range []string{"/usr/", "/bin/", "/nix/", "/snap/", "/opt/homebrew/", "/Applications/"} {
		if strings.HasPrefix(exe, dir) {
			return true
		}
	}
	return installed(exe)
}
