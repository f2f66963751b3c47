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

// checkConfig refuses a configuration with which the daemon, or any of its declared tunnels, would
// not start, before the running daemon is stopped for it.
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

// judge returns what a daemon started with file would complain about. It does not know the state
// folder: whether the name of a declared tunnel is already taken by another tunnel is left to the
// daemon.
func judge(file *config.File) error {
	settings := newSettings(Daemon{}, file)
	var refuse func(netip.Addr, int) error
	// A name that cannot be resolved now may resolve once the service starts.
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
	// A relative path is looked up where the service runs, and systemd provides its credentials
	// when the service starts.
	if token := file.LocalAPI.BearerTokenFile; filepath.IsAbs(token) && !strings.HasPrefix(token, "/run/credentials/") {
		guards.BearerTokenFile = token
	}
	if err := guards.Check(); err != nil && !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s: %w", file.Path(), err)
	}
	if _, err := definition.CheckVisits(declaredVisits(file)); err != nil {
		return visitMistake(file, err)
	}
	// The same applies to files with passwords.
	specs, tables, err := declaredSpecs(file, func(string) (string, error) { return "a password", nil })
	if err != nil {
		return err
	}
	_, err = definition.Declared(specs, "", origin.Guard{Refuse: refuse}, nil)
	return declareMistake(file, tables, err)
}
