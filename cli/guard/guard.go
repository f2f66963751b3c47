// Package guard provides the flags that say who may visit a tunnel, starting with its first
// visitor. What a policy may contain is defined by package policy, and what it means by the relay.
package guard

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"adit/cli/command"
	"adit/cli/policy"
	"adit/cli/stdio"
	"adit/localapi/client"
)

// UserName is the user name of visitors with a password.
const UserName = "guest"

// Flags say who may visit.
type Flags struct {
	makeUp       bool
	passwordFile string
	allow        []string
	file         string
}

// Guarded is the result of Flags.
type Guarded struct {
	Policy   json.RawMessage // nil: everybody is let in
	Password string          // that UserName has; empty: none is asked for
}

// AddAllow adds the flag for the addresses that may visit.
func (f *Flags) AddAllow(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.allow, "allow", nil, "allow only this address or CIDR; may be repeated")
}

// Add adds the flags for a tunnel of any type.
func (f *Flags) Add(flags *pflag.FlagSet) {
	f.AddAllow(flags)
	flags.StringVar(&f.file, "policy", "", "JSON file with an access policy, see adit tunnel policy; - is standard input")
}

// AddPassword adds the flags for a tunnel whose visitors can be asked for a password.
func (f *Flags) AddPassword(flags *pflag.FlagSet) {
	flags.BoolVar(&f.makeUp, "password", false, "ask visitors for a password, which is generated and printed here")
	flags.StringVar(&f.passwordFile, "password_file", "", "ask visitors for the password in this file; - is standard input")
}

// Read makes a policy from the flags for a tunnel of a given type and mode.
func (f *Flags) Read(std *stdio.Streams, in client.TunnelCreate) (got Guarded, err error) {
	asks := f.makeUp || f.passwordFile != ""
	switch {
	case f.passwordFile == "-" && f.file == "-":
		return got, command.Usagef("--password_file and --policy cannot both be standard input")
	case asks && in.Type != "" && in.Type != client.TunnelTypeHTTP && in.Type != client.TunnelTypeHTTPS, asks && in.Mode == client.TunnelModePrivate:
		return got, command.Usagef("only http and https tunnels can ask for a password")
	}
	fields := map[string]json.RawMessage{}
	if f.file != "" {
		var p policy.Input
		if err := p.Read(std.In, []string{f.file}); err != nil {
			return got, err
		}
		if err := json.Unmarshal(p.Document, &fields); err != nil {
			return got, fmt.Errorf("read the policy: %w", err)
		}
	}
	said := map[string]any{}
	if len(f.allow) > 0 {
		said["allow"] = f.allow
	}
	if asks {
		if got.Password, err = Password(std, f.makeUp, f.passwordFile); err != nil {
			return Guarded{}, err
		}
		said["basic_auth"] = []map[string]string{{"name": UserName, "password": got.Password}}
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		if _, twice := fields[name]; twice {
			return Guarded{}, command.Usagef("%s is already in %s; set it there or by a flag, not both", name, f.file)
		}
		if fields[name], err = json.Marshal(said[name]); err != nil {
			return Guarded{}, err
		}
	}
	if len(fields) == 0 {
		return Guarded{}, nil
	}
	got.Policy, err = json.Marshal(fields)
	return got, err
}

// Password returns the password in a file, or a generated one.
func Password(std *stdio.Streams, makeUp bool, file string) (string, error) {
	switch {
	case makeUp && file != "":
		return "", command.Usagef("--password generates a password, and --password_file contains one; use only one of them")
	case makeUp:
		return strings.ToLower(rand.Text()[:12]), nil
	case file == "":
		return "", nil
	}
	password, err := std.Secret(file)
	if err == nil && password == "" {
		err = fmt.Errorf("%s contains no password", file)
	}
	return password, err
}
