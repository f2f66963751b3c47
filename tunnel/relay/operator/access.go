package operator

import (
	"context"
	"errors"
	"net/http"

	"adit/tunnel/relay/accesslog"
	"adit/tunnel/relay/console"
	"adit/tunnel/wire"
)

// Access searches all stored events, in turns of limited work.
func (o *Operator) Access(ctx context.Context, q console.Access) (console.AccessPage, error) {
	page, err := o.cfg.Access.Search(ctx, q)
	return page, accessError(err)
}

// ExportAccess calls give with all matching events, newest first.
func (o *Operator) ExportAccess(ctx context.Context, q console.Access, give func(*wire.Access) error) error {
	return accessError(o.cfg.Access.Export(ctx, q, give))
}

// FollowAccess calls give with the events of all nodes as they are stored.
func (o *Operator) FollowAccess(ctx context.Context, q console.Access, give func(list []wire.Access, missed int) error) error {
	return accessError(o.cfg.Access.Follow(ctx, q, give))
}

// accessError translates the access log's errors about questions for the operator.
func accessError(err error) error {
	var field *accesslog.FieldError
	if errors.As(err, &field) {
		return bad(http.StatusBadRequest, "invalid_parameter", field.Field, "%s", field.Message)
	}
	return err
}
