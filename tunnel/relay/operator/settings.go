package operator

import (
	"context"

	"adit/tunnel/relay/console"
	"adit/tunnel/relay/store"
)

// Settings returns the settings in force.
func (o *Operator) Settings(ctx context.Context) (console.Settings, error) {
	l := o.cfg.Settings.Limits
	s := console.Settings{
		Node: o.cfg.Node, Domain: o.cfg.Settings.Domain, PublicHost: o.cfg.Host, AnyDomain: o.cfg.Settings.AnyDomain,
		Geo: o.geoSettings(), SchemaVersion: store.SchemaVersion,
		Access: console.AccessSettings{Days: l.AccessDays, Bytes: l.AccessBytes},
		Sinks:  console.SinkSettings{AllowPrivate: o.cfg.Settings.Sinks.AllowPrivate},
		SignIn: o.signInSettings(),
		Limits: map[string]any{
			"sessions": l.Sessions, "sessions_per_client": l.SessionsPerClient, "tunnels_per_session": l.TunnelsPerSession,
			"claims_per_client": l.ClaimsPerClient, "connections": l.Connections, "connections_per_address": l.ConnectionsPerAddress,
			"header_bytes": l.HeaderBytes, "header_time": l.HeaderTime, "idle_time": l.IdleTime, "stream_idle": l.StreamIdle,
			"origin_time": l.OriginTime, "udp_flows": l.UDPFlows, "udp_idle": l.UDPIdle, "udp_amplification": l.UDPAmplification,
		},
	}
	kept, err := o.cfg.Store.Events.Kept(ctx)
	if err != nil {
		return s, err
	}
	s.Access.StoredBytes = kept.Bytes
	if !kept.Oldest.IsZero() {
		oldest := kept.Oldest.UTC()
		s.Access.Oldest = &oldest
	}
	return s, nil
}

// signInSettings describes the identity providers.
func (o *Operator) signInSettings() console.SignInSettings {
	s := console.SignInSettings{
		CallbackURL: o.cfg.CallbackURL, Providers: []console.SignInProvider{},
	}
	if o.cfg.SignIn == nil {
		return s
	}
	for _, p := range o.cfg.SignIn.Status() {
		shown := console.SignInProvider{Name: p.Name, Type: p.Kind, Issuer: p.Issuer, Error: p.Error}
		if !p.Asked.IsZero() {
			asked := p.Asked.UTC()
			shown.AskedAt = &asked
		}
		s.Providers = append(s.Providers, shown)
	}
	return s
}

// geoSettings describes the current geo database.
func (o *Operator) geoSettings() console.GeoSettings {
	s := console.GeoSettings{File: o.cfg.Settings.Geo.Database, Error: o.cfg.Geo.Fault()}
	if db := o.cfg.Geo.Database(); db != nil {
		loaded, built := db.Loaded(), db.Built()
		s.LoadedAt, s.BuildAt = &loaded, &built
	}
	return s
}
