package engine

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// TestWhatANATSClusterLacksIsSaid uses clusters that no relay can use.
func TestWhatANATSClusterLacksIsSaid(t *testing.T) {
	none := func(o *server.Options) { o.JetStream = false }
	may := func(subjects ...string) func(*server.Options) {
		return func(o *server.Options) {
			o.Username, o.Password = "", ""
			o.Users = []*server.User{{Username: "u", Password: "p", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Allow: subjects}}}}
		}
	}
	for _, c := range []struct {
		name, want string
		change     func(*server.Options)
	}{
		{"no JetStream", "has no JetStream", none},
		{"no right to make a stream", `Permissions Violation for Publish to "$JS.API.STREAM.`, may("$JS.API.STREAM.INFO.>", "$JS.API.INFO")},
	} {
		t.Run(c.name, func(t *testing.T) {
			ns, _ := run(t, c.change)
			log := new(told)
			url := "nats://u:p@" + ns.Addr().String()
			e, err := Open(Config{Dir: t.TempDir(), URLs: []string{url}, Log: slog.New(slog.NewTextHandler(log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if _, err := e.Bucket(ctx, "settings"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
