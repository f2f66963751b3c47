package main

import "context"

// others are the columns in which something else stands in the place of relay
// and agent, over loopback: the floor, and the tunnel that most machines have.
var others = map[string]func(ctx context.Context, dir string, o *origin) (*lab, face, error){
	"bare-udp": func(ctx context.Context, _ string, o *origin) (*lab, face, error) { return startBare(ctx, "udp", o) },
	"bare-tcp": func(ctx context.Context, _ string, o *origin) (*lab, face, error) { return startBare(ctx, "tcp", o) },
	"bare-tls": func(ctx context.Context, _ string, o *origin) (*lab, face, error) { return startBare(ctx, "tls", o) },
	"ssh":      startSSH,
}

// measureOther fills one of these columns.
func measureOther(ctx context.Context, t *table, column, dir string, o *origin, opts options) error {
	lab, f, err := others[column](ctx, dir, o)
	if err != nil {
		return err
	}
	defer lab.close()
	return measure(ctx, t, column, f, lab, opts)
}
