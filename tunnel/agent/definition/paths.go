package definition

import (
	"cmp"
	"slices"
	"strings"

	"adit/tunnel/agent/origin"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

// normalPaths checks paths and returns them with defaults filled in, longest first.
func normalPaths(guard origin.Guard, paths []Path, web bool) ([]Path, *refusal.Error) {
	if len(paths) == 0 {
		return nil, nil
	}
	if !web {
		return paths, refusal.Invalid("paths", "is for http and https tunnels only")
	}
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = p.Path
	}
	if err := wire.CheckPaths(names); err != nil {
		return paths, refusal.Invalid("paths", "%v", err)
	}
	paths = slices.SortedFunc(slices.Values(paths), func(a, b Path) int { return wire.ComparePaths(a.Path, b.Path) })
	for i := range paths {
		p := &paths[i]
		p.LocalIP, p.LocalScheme = cmp.Or(p.LocalIP, "127.0.0.1"), cmp.Or(p.LocalScheme, SchemeHTTP)
		switch {
		case p.LocalPort < 1 || p.LocalPort > 65535:
			return paths, refusal.Invalid("paths", "local_port of %s must be 1 to 65535", p.Path)
		case !slices.Contains(knownSchemes, p.LocalScheme):
			return paths, refusal.Invalid("paths", "local_scheme of %s must be one of %s", p.Path, strings.Join(knownSchemes, ", "))
		case p.HostHeader != "" && !validHostHeader(p.HostHeader):
			return paths, refusal.Invalid("paths", "host_header of %s must be a host name, with or without a port", p.Path)
		}
		host, err := normalHost(guard, p.LocalIP, p.LocalPort)
		if err != nil {
			return paths, OfPath(p.Path, err)
		}
		p.LocalIP = host
	}
	return paths, nil
}

// OfPath turns an error about a field of a tunnel into one about the same field of its path.
func OfPath(path string, err *refusal.Error) *refusal.Error {
	return refusal.Invalid("paths", "%s of %s: %s", err.Field, path, strings.TrimPrefix(err.Message, err.Field+": "))
}
