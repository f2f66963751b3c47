package service

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"path/filepath"
	"strings"

	"adit/internal/config"
	"adit/internal/paths"
	"adit/localapi"
	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/origin"
)

// checkConfig refuses a configuration with which the daemon does not start, or
// not all of its declared tunnels do, before the daemon that runs is stopped for
// it.
func checkConfig() error {
	file, err := config.Load(paths.Service().Config)
	var mistake *config.Error
	if err != nil && !errors.As(err, &mistake) {
		return nil // what only the service may read, only it can judge
	}
	if err == nil {
		err = judge(file)
	}
	if err != nil {
		return fmt.Errorf("%w; mend it first: the service is left as it was", err)
	}
	return nil
}

// judge says what a daemon that starts with file will say of it. It knows nothing
// of the state folder: that the name of a declared tunnel is another tunnel's
// already is left to the daemon.
func judge(file *config.File) error {
	settings := newSettings(Daemon{}, file)
	var refuse func(netip.Addr, int) error
	// What cannot be resolved now may be once the service starts.
	if addr, err := net.ResolveTCPAddr("tcp", settings.listen); err == nil {
		if addr.IP == nil {
			addr.IP = net.IPv6unspecified
		}
		api := addrPort(addr)
		if err := localapi.CheckListen(api, settings.bearer()); err != nil {
			return err
		}
		refuse = own{api: api}.refuse
	}
	guards := localapi.Config{AllowedOrigins: file.LocalAPI.AllowedOrigins, AllowedHosts: file.LocalAPI.AllowedHosts}
	// Another is looked for where the service runs, and systemd hands over its
	// credentials when the service starts.
	if token := file.LocalAPI.BearerTokenFile; filepath.IsAbs(token) && !strings.HasPrefix(token, "/run/credentials/") {
		guards.BearerTokenFile = token
	}
	if err := guards.Check(); err != nil && !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s: %w", file.Path(), err)
	}
	if _, err := definition.CheckVisits(declaredVisits(file)); err != nil {
		return visitMistake(file, err)
	}
	// So are files with passwords.
	specs, tables, err := declaredSpecs(file, func(string) (string, error) { return "a password", nil })
	if err != nil {
		return err
	}
	_, err = definition.Declared(specs, "", origin.Guard{Refuse: refuse}, nil)
	return declareMistake(file, tables, err)
}
