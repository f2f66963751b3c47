package wire

import "log/slog"

// LogValue is the token's hint, so that a log never has the secret.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.Hint()) }

// LogValue leaves the secret out.
func (h Hello) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("client_id", h.ClientID),
		slog.String("instance", h.Instance),
		slog.String("version", h.Version),
		slog.String("os", h.OS),
		slog.String("arch", h.Arch),
	)
}

// String leaves the secret out, for whoever prints the value.
func (h Hello) String() string { return "hello of " + h.Instance + ", adit " + h.Version }
