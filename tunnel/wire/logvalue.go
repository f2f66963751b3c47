package wire

import "log/slog"

// LogValue returns the token's hint, so that the secret never reaches a log.
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

// String leaves the secret out, so that printing the value by mistake reveals nothing.
func (h Hello) String() string { return "hello of " + h.Instance + ", adit " + h.Version }
