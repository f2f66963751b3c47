package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"adit/internal/paths"
	"adit/localapi/client"
	"adit/service"
)

// installed returns the service's state; empty if it is unknown, or if a daemon other than the
// service is meant.
func installed() service.Status {
	if os.Getenv(paths.EnvState) != "" {
		return service.Status{}
	}
	s, err := service.Query(context.Background())
	if err != nil {
		return service.Status{}
	}
	return s
}

// howToStart says what to do about a daemon that is not running.
func howToStart(s service.Status) string {
	switch s.State {
	case service.Stopped:
		return "start its service with `adit service start`"
	case service.Running, service.Starting, service.Failed:
		return "its service is " + s.State + ": " + s.Log + " says why"
	case service.NotInstalled:
		return "start it with `adit start`, or as a service with `adit service install` and `adit service start`"
	}
	return "start it with `adit start`"
}

// Explain turns an error into the sentence that the user reads.
func Explain(err error) string {
	var refusal *client.Error
	var file *fs.PathError
	switch {
	case errors.Is(err, client.ErrSilent):
		return err.Error() + "; if it is the adit daemon, restart it (`adit service restart` if it is the service), otherwise start adit on another port, for example with `adit start --http_listen 127.0.0.1:8181`"
	case errors.Is(err, client.ErrForeign):
		return err.Error() + ", and no daemon was found; start one on another port, for example with `adit start --http_listen 127.0.0.1:8181`"
	case errors.Is(err, client.ErrNotRunning):
		return "the adit daemon is not running; " + howToStart(installed())
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.As(err, &refusal):
		switch {
		case refusal.Code == client.ErrorCodeNotConfigured:
			return "there is no auth token yet; run `adit login TOKEN` with one from your relay's operator"
		case refusal.Code == client.ErrorCodeUnauthorized && os.Getenv("ADIT_BEARER_TOKEN") == "":
			return "the local API requires a Bearer token; put the one from [local_api] bearer_token into ADIT_BEARER_TOKEN"
		}
		if refusal.Code == client.ErrorCodeInvalidToken && refusal.Field == "client_id" {
			return refusal.Message + "; leave out the client id, or give that of the token's client"
		}
		next := map[client.ErrorCode]string{
			client.ErrorCodeInvalidToken:     "; copy the whole token again, or ask the relay's operator for a new one",
			client.ErrorCodeUnauthorized:     "; put the token from [local_api] bearer_token into ADIT_BEARER_TOKEN",
			client.ErrorCodeRelayUnreachable: "; run `adit doctor` to find out why",
			// The relay's sentence ends with: read it again.
			client.ErrorCodePreconditionFailed: " with `adit tunnel policy show`",
		}[refusal.Code]
		return refusal.Message + next
	case errors.As(err, &file) && file.Op == "open" && errors.Is(err, fs.ErrNotExist):
		said := "open " + file.Path + ": there is no such file or folder; check the name"
		return strings.Replace(err.Error(), file.Error(), said, 1)
	}
	return err.Error()
}

// WithoutToken returns err. If err says that there is no token, it says instead why the daemon has
// no usable one: for example, ADIT_AUTH_TOKEN may be mistyped.
func WithoutToken(ctx context.Context, c *client.Client, err error) error {
	if !client.IsCode(err, client.ErrorCodeNotConfigured) {
		return err
	}
	if st, no := c.Status(ctx); no == nil && st.LastError != "" {
		return fmt.Errorf("%s; run `adit login TOKEN`", st.LastError)
	}
	return err
}
