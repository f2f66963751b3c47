// Package sentence builds the errors that tell a relay's operator which key of relay.toml
// is at fault and what to do about it, without saying anything twice.
package sentence

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"adit/internal/socketerr"
)

// sentence is an error that says in its own words what its cause says in the system's.
// The cause is available to errors.Is, but is not printed as well.
type sentence struct {
	text  string
	cause error
}

func (s *sentence) Error() string { return s.text }
func (s *sentence) Unwrap() error { return s.cause }

// New returns an error with a text that already says what its cause is.
func New(text string, cause error) error { return &sentence{text, cause} }

// File returns an error that says what to do about a file that cannot be read. what is
// the key that names the file, or a description of it.
func File(what, path string, err error) error {
	var text string
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text = fmt.Sprintf("%s: there is no file %s; is the name right?", what, path)
	case errors.Is(err, fs.ErrPermission):
		text = fmt.Sprintf("%s: the user that the relay runs as may not read %s; give it the right to", what, path)
	case errors.Is(err, syscall.EISDIR):
		text = fmt.Sprintf("%s: %s is a folder; name the file in it", what, path)
	default:
		var file *fs.PathError
		if errors.As(err, &file) {
			return &sentence{fmt.Sprintf("%s: %s cannot be read: %v", what, path, file.Err), err}
		}
		return fmt.Errorf("%s: %w", what, err)
	}
	return &sentence{text, err}
}

// Listen returns an error that says what to do about a listener that did not open. key is
// its configuration key.
func Listen(key, addr string, err error) error {
	var text string
	switch {
	case errors.Is(err, socketerr.InUse):
		over := "TCP"
		var op *net.OpError
		if errors.As(err, &op) && strings.HasPrefix(op.Net, "udp") {
			over = "UDP"
		}
		text = fmt.Sprintf("%s: another program has %s %s; end it, or set another %s", key, over, addr, key)
	case errors.Is(err, socketerr.NotAllowed):
		text = fmt.Sprintf("%s: %s needs the right to open ports below 1024: run the relay as its service, as root or with CAP_NET_BIND_SERVICE (setcap cap_net_bind_service=+ep; for a container --sysctl net.ipv4.ip_unprivileged_port_start=0), or set another %s", key, addr, key)
	case errors.Is(err, socketerr.NoAddress):
		text = fmt.Sprintf("%s: %s is not an address of this machine; name one, or the port alone", key, addr)
	default:
		return fmt.Errorf("%s: %w", key, err)
	}
	return &sentence{text, err}
}
