// Package admin calls the admin API of a running relay, which it finds by its data folder or, if
// the relay is elsewhere, from the environment. What to ask and show is left to the commands.
package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"adit/tunnel/relay/datadir"
)

// Variables that point the commands at a relay elsewhere.
const (
	envAdminURL   = "ADIT_RELAY_ADMIN_URL"
	envAdminToken = "ADIT_RELAY_ADMIN_TOKEN"
)

const (
	adminTime = 30 * time.Second
	// MaxReply bounds the size of a relay's response, in bytes.
	MaxReply = 64 << 20
)

// API is the admin API of a running relay.
type API struct {
	getenv  func(string) string
	folders func(dataDir, config string) ([]string, error)
	dataDir string // --data_dir
	config  string // --config
}

// New returns the API of the relay that the environment names or, if it names none, of the one
// selected by flags. folders returns the folders in which a relay's data may be, given --data_dir
// and --config; the first one in which a relay is running is used.
func New(getenv func(string) string, folders func(dataDir, config string) ([]string, error)) *API {
	return &API{getenv: getenv, folders: folders}
}

// Flags adds the flags to a command and its subcommands.
func (a *API) Flags(cmd *cobra.Command) *cobra.Command {
	cmd.PersistentFlags().StringVar(&a.dataDir, "data_dir", "", "the relay's data folder, if it is not the usual one")
	cmd.PersistentFlags().StringVar(&a.config, "config", "", "the relay's configuration file, to find its data folder")
	return cmd
}

// find returns the API's address and the admin token.
func (a *API) find() (base, token string, err error) {
	base, token = a.getenv(envAdminURL), a.getenv(envAdminToken)
	if base != "" {
		u, err := url.Parse(base)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return "", "", fmt.Errorf("%s is not a URL such as https://relay.example.com:37280", envAdminURL)
		}
		if token == "" {
			return "", "", fmt.Errorf("set %s to the admin token of that relay", envAdminToken)
		}
		return strings.TrimSuffix(base, "/"), token, nil
	}
	dirs, err := a.folders(a.dataDir, a.config)
	if err != nil {
		return "", "", err
	}
	for _, dir := range dirs {
		info, err := datadir.ReadRuntime(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if errors.Is(err, fs.ErrPermission) {
			return "", "", notForAll(dir)
		}
		if err != nil {
			return "", "", err
		}
		if token == "" {
			data, err := os.ReadFile(filepath.Join(dir, datadir.AdminTokenFile))
			if errors.Is(err, fs.ErrPermission) {
				return "", "", notForAll(dir)
			}
			if err != nil {
				return "", "", fmt.Errorf("read the admin token: %w", err)
			}
			token = strings.TrimSpace(string(data))
		}
		return info.ConsoleURL, token, nil
	}
	return "", "", fmt.Errorf("no relay is running with its data in %s; start one with `adit relay start`, or give its data folder with --data_dir", strings.Join(dirs, " or "))
}

// notForAll returns the error for a relay on this machine that belongs to another user.
func notForAll(dir string) error {
	return fmt.Errorf("only the relay's own user can read its data in %s, including the admin token; run this with sudo or as that user", dir)
}

// Call makes a request and decodes the content of the response's envelope into out.
func (a *API) Call(ctx context.Context, method, path string, in, out any) error {
	_, err := a.Replace(ctx, "", method, path, in, out)
	return err
}

// Replace is like Call for something that may be replaced only while it has the given ETag; if
// empty, any. It returns the new ETag.
func (a *API) Replace(ctx context.Context, etag, method, path string, in, out any) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTime)
	defer cancel()
	resp, err := a.open(ctx, etag, method, path, in)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	return resp.Header.Get("ETag"), readReply(resp, out)
}

// open makes a request; the caller must close the response's body.
func (a *API) open(ctx context.Context, etag, method, path string, in any) (*http.Response, error) {
	base, token, err := a.find()
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if etag != "" {
		req.Header.Set("If-Match", etag)
	}
	// Proxies from the environment are not used, and the token is sent to nobody else.
	client := &http.Client{
		Transport:     &http.Transport{Proxy: nil, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		var asked *url.Error // which says again what was asked
		if errors.As(err, &asked) {
			err = asked.Err
		}
		if errors.Is(err, http.ErrSchemeMismatch) {
			return nil, fmt.Errorf("the console at %s uses http, not https; set %s to http://…", base, envAdminURL)
		}
		return nil, fmt.Errorf("the relay does not answer at %s; is it running? (%w)", base, err)
	}
	if resp.StatusCode >= 400 && isAgent(ctx, client, base) {
		resp.Body.Close()
		return nil, fmt.Errorf("%s is the local API of an agent, not a relay's console, which listens on port 37280 by default; set %s to that", base, envAdminURL)
	}
	return resp, nil
}

// isAgent reports whether an agent's daemon answers at base. The token is not sent to it.
func isAgent(ctx context.Context, client *http.Client, base string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var health struct{ Status, Version, Service string }
	err = json.NewDecoder(io.LimitReader(resp.Body, 1<<10)).Decode(&health)
	return err == nil && health.Status == "ok" && health.Version != "" && health.Service == ""
}

// ChangedError is a refusal to replace something that has changed since it was read.
type ChangedError struct{ message string }

func (e *ChangedError) Error() string { return e.message }

// readReply decodes the content of a response's envelope into out.
func readReply(resp *http.Response, out any) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, MaxReply))
	if err != nil {
		return fmt.Errorf("read the relay's answer: %w", err)
	}
	if resp.StatusCode == http.StatusNoContent {
		return nil
	}
	var envelope struct {
		Data  json.RawMessage                 `json:"data"`
		Error *struct{ Code, Message string } `json:"error"`
	}
	if err := json.Unmarshal(data, &envelope); err != nil {
		return fmt.Errorf("%s answered with status %d and no JSON; is it a relay's console?", resp.Request.URL.Host, resp.StatusCode)
	}
	if e := envelope.Error; e != nil && e.Code == "unauthorized" {
		return fmt.Errorf("%s; put the relay's admin token, or an API token from its console, into %s", e.Message, envAdminToken)
	} else if e != nil && e.Code == "not_found" {
		return errors.New(e.Message + whatThereIs(resp.Request.URL.Path))
	} else if e != nil && e.Code == "precondition_failed" {
		return &ChangedError{e.Message}
	} else if e != nil {
		return errors.New(scopeField.ReplaceAllString(e.Message, "--$1:"))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(envelope.Data, out)
}

// scopeField matches the relay's name for a field of a client's scope; on the command line it is a
// flag.
var scopeField = regexp.MustCompile(`^scope\.(\w+)(?:\[\d+\])?:`)

// whatThereIs names the command that lists the kind of thing that the relay did not find at path.
func whatThereIs(path string) string {
	kind, _, _ := strings.Cut(strings.TrimPrefix(path, "/api/v1/"), "/")
	if of := map[string]string{"clients": "client", "sinks": "sink", "policies": "policy"}[kind]; of != "" {
		return "; `adit relay " + of + " list` shows them"
	}
	return ""
}
