package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
)

const maxValue = 256 << 10

// Bucket finds the bucket with a name, or creates it.
func (e *Engine) Bucket(ctx context.Context, name string) (kv jetstream.KeyValue, err error) {
	var lacks error // what the cluster was found to lack; an attempt that ctx ends does not say so
	err = bucket.Patiently(ctx, func(ctx context.Context) (err error) {
		if kv, err = e.bucket(ctx, name); err == nil {
			return nil
		}
		lacking := e.lacking(err)
		switch {
		case lacking == nil && errors.Is(err, context.DeadlineExceeded):
			return err
		case lacking == nil:
			lacks = nil
			return err
		case lacks == nil && !bucket.IsRefusal(lacking):
			e.log.Warn("the store cannot be opened yet; it is tried again", "error", lacking)
		}
		lacks = lacking
		return lacking
	})
	if err != nil {
		return nil, fmt.Errorf("open store of %s: %w", name, cmp.Or(lacks, err))
	}
	return kv, nil
}

func (e *Engine) bucket(ctx context.Context, name string) (jetstream.KeyValue, error) {
	replicas, err := e.copies(ctx, "KV_adit_"+name)
	if err != nil {
		return nil, err
	}
	kv, err := e.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: "adit_" + name, History: 1, MaxValueSize: maxValue, Storage: jetstream.FileStorage,
		Replicas: replicas, LimitMarkerTTL: bucket.MarkerTTL,
	})
	return kv, e.Fault(err)
}

// HasBucket reports whether there is a bucket with a name.
func (e *Engine) HasBucket(ctx context.Context, name string) (bool, error) {
	_, err := e.js.Stream(ctx, "KV_adit_"+name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, nil
	}
	return err == nil, e.Fault(err)
}

// copies returns how many servers should keep a stream. It fails if the cluster does not say how
// many keep it now: a cluster that has lost a server must not lose replicas as well.
func (e *Engine) copies(ctx context.Context, stream string) (int, error) {
	if wished := e.cfg.Replicas; wished > 0 || e.server != nil {
		return max(wished, 1), nil
	}
	n := 1
	if len(e.conn.Servers()) >= 3 {
		n = 3
	}
	have, err := e.js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return n, nil
	}
	if err != nil {
		return 0, fmt.Errorf("ask how often %s is kept: %w", stream, err)
	}
	return max(n, have.CachedInfo().Config.Replicas), nil
}
