package certs

import (
	"context"
	"log/slog"

	"go.uber.org/zap/zapcore"
)

// zapCore logs certmagic's messages at debug level only. What an operator must know is
// logged here in plain words.
type zapCore struct {
	log    *slog.Logger
	fields []zapcore.Field
}

func (c *zapCore) Enabled(zapcore.Level) bool {
	return c.log.Enabled(context.Background(), slog.LevelDebug)
}

func (c *zapCore) With(fields []zapcore.Field) zapcore.Core {
	return &zapCore{c.log, append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

func (c *zapCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c *zapCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range append(c.fields[:len(c.fields):len(c.fields)], fields...) {
		f.AddTo(enc)
	}
	args := make([]any, 0, 2*len(enc.Fields)+2)
	for k, v := range enc.Fields {
		args = append(args, k, v)
	}
	c.log.Debug("acme", append(args, "detail", e.Message)...)
	return nil
}

func (c *zapCore) Sync() error { return nil }
