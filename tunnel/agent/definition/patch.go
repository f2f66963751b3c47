package definition

import "adit/tunnel/wire"

// Patch holds the fields of a tunnel to change; nil fields stay as they are.
type Patch struct {
	Type            *string             `json:"type,omitempty"`
	Mode            *string             `json:"mode,omitempty"`
	LocalIP         *string             `json:"local_ip,omitempty"`
	LocalPort       *int                `json:"local_port,omitempty"`
	Domain          *string             `json:"domain,omitempty"`
	Name            *string             `json:"name,omitempty"`
	LocalScheme     *string             `json:"local_scheme,omitempty"`
	RemotePort      *int                `json:"remote_port,omitempty"`
	HostHeader      *string             `json:"host_header,omitempty"`
	RequestHeaders  *wire.HeaderChanges `json:"request_headers,omitempty"` // all of them
	ResponseHeaders *wire.HeaderChanges `json:"response_headers,omitempty"`
	Paths           *[]Path             `json:"paths,omitempty"`    // all of them
	Visitors        *[]string           `json:"visitors,omitempty"` // all of them
	ProxyProtocol   *string             `json:"proxy_protocol,omitempty"`
	Inspect         *bool               `json:"inspect,omitempty"`
}

// Patched returns spec with the changes in p. Fields that only the old type or mode has are
// removed, unless p sets them.
func (spec Tunnel) Patched(p Patch) Tunnel {
	want := spec
	set(&want.Type, p.Type)
	set(&want.Mode, p.Mode)
	set(&want.LocalIP, p.LocalIP)
	set(&want.LocalPort, p.LocalPort)
	set(&want.Domain, p.Domain)
	set(&want.Name, p.Name)
	set(&want.LocalScheme, p.LocalScheme)
	set(&want.RemotePort, p.RemotePort)
	set(&want.HostHeader, p.HostHeader)
	set(&want.RequestHeaders, p.RequestHeaders)
	set(&want.ResponseHeaders, p.ResponseHeaders)
	set(&want.Paths, p.Paths)
	set(&want.Visitors, p.Visitors)
	set(&want.ProxyProtocol, p.ProxyProtocol)
	if p.Inspect != nil {
		v := *p.Inspect
		want.Inspect = &v
	}
	if private := want.Private(); private != spec.Private() {
		if p.Domain == nil {
			want.Domain = ""
		}
		if p.RemotePort == nil {
			want.RemotePort = 0
		}
		if p.Visitors == nil && !private {
			want.Visitors = nil
		}
	}
	if p.Type != nil && *p.Type != spec.Type {
		if p.RemotePort == nil {
			want.RemotePort = 0
		}
		if p.Domain == nil && want.Numbered() {
			want.Domain = ""
		}
		if p.LocalScheme == nil && !want.Web() {
			want.LocalScheme = ""
		}
		if p.HostHeader == nil && !want.Web() {
			want.HostHeader = ""
		}
		if p.RequestHeaders == nil && !want.Web() {
			want.RequestHeaders = wire.HeaderChanges{}
		}
		if p.ResponseHeaders == nil && !want.Web() {
			want.ResponseHeaders = wire.HeaderChanges{}
		}
		if p.Paths == nil && !want.Web() {
			want.Paths = nil
		}
		if p.ProxyProtocol == nil && want.Type == wire.TypeUDP {
			want.ProxyProtocol = ""
		}
	}
	return want
}

func set[T any](field *T, v *T) {
	if v != nil {
		*field = *v
	}
}
