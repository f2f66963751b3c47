package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/guard"
	"adit/cli/stdio"
	"adit/internal/folder"
	"adit/internal/visible"
	"adit/localapi/client"
)

// FilesCommand returns the short form for a folder: adit files.
func FilesCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	var in client.TunnelCreate
	var kind, passwordFile string
	var makeUp, inspect bool
	var opts folder.Options
	var lasts time.Duration
	var guarding guard.Flags
	cmd := &cobra.Command{
		Use:   "files [FOLDER]",
		Short: "Publish a folder, read-only, until Ctrl-C",
		Long: `Publish the files of a folder until Ctrl-C: as a list to browse, or as a site if
the folder has an index.html. The default is the current folder. Visitors can
read files but not change them. Names that begin with a dot are not served, and
neither are symbolic links that lead out of the folder.

Anyone who has the address can read everything, unless you ask for a password or
restrict access with --allow, which the relay's operator must permit.`,
		Example: `  adit files
  adit files ./dist --domain preview
  adit files ~/Pictures/2026 --password --for 8h`,
		Args: command.Args(0, 1, "FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if kind != "" && kind != "http" && kind != "https" {
				return command.Usagef("a folder can be published over http or https, not %q", kind)
			}
			if err := checkFor(cmd.Flags(), lasts); err != nil {
				return err
			}
			var err error
			if opts.Password, err = guard.Password(std, makeUp, passwordFile); err != nil {
				return err
			}
			in.Type, in.Ephemeral = client.TunnelType(cmp.Or(kind, "https")), true
			if !inspect {
				in.Inspect = &inspect
			}
			guarded, err := guarding.Read(std, in)
			if err != nil {
				return err
			}
			if guarded.Policy != nil {
				in.Policy = guarded.Policy
			}
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return files(cmd.Context(), dir, opts, in, func(ctx context.Context, what published) error {
				return publish(ctx, std, find, what.lasting(lasts))
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&kind, "type", "", "http or https (default https)")
	f.StringVar(&in.Domain, "domain", "", "full name, or one label below the relay's domain, such as shop; '*.shop' covers all names below it; empty lets the relay choose")
	f.StringVar(&in.Name, "name", "", "display name (default the folder's name)")
	f.BoolVar(&makeUp, "password", false, "ask visitors for a password, which is generated and printed here")
	f.StringVar(&passwordFile, "password_file", "", "ask visitors for the password in this file; - is standard input")
	f.BoolVar(&opts.Hidden, "hidden", false, "also serve names that begin with a dot")
	f.BoolVar(&inspect, "inspect", true, "show traffic in the inspector")
	guarding.AddAllow(f)
	addFor(f, &lasts)
	return cmd
}

// files serves a folder on loopback and publishes it until ctx ends.
func files(ctx context.Context, dir string, opts folder.Options, in client.TunnelCreate, publish func(context.Context, published) error) error {
	served, err := folder.New(dir, opts)
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return fmt.Errorf("cannot read the folder %s: %w", dir, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the daemon: %w", err)
	}
	in.LocalPort = listener.Addr().(*net.TCPAddr).Port
	what := published{TunnelCreate: in, Folder: dir, Password: opts.Password}
	if name := served.Name(); in.Name == "" && nameable(name) {
		what.Name, what.AnyName = name, true
	}
	if abs, err := filepath.Abs(dir); err == nil {
		what.Folder = abs
	}
	server := &http.Server{Handler: fromElsewhere(served, in.LocalPort), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	tasks, life := errgroup.WithContext(ctx)
	tasks.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve %s: %w", dir, err)
		}
		return nil
	})
	tasks.Go(func() error {
		defer server.Close()
		return publish(life, what)
	})
	return tasks.Wait()
}

// fromElsewhere serves those who ask for the folder by its public address. Who asks for the
// port here says so in the Host: a page of this machine's browser, whose own name has come
// to lead here (DNS rebinding), and whom no policy of the relay has looked at.
func fromElsewhere(folder http.Handler, port int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, asked, err := net.SplitHostPort(r.Host); err == nil && asked == strconv.Itoa(port) {
			http.Error(w, "Open this folder by its public address.", http.StatusForbidden)
			return
		}
		folder.ServeHTTP(w, r)
	})
}

// nameable reports whether a tunnel may have a folder's name, which can be
// longer or stranger than the daemon takes.
func nameable(name string) bool {
	return utf8.ValidString(name) && len(name) <= 64 && strings.TrimSpace(name) == name && visible.Text(name) == name
}
