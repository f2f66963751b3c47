package machine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/stdio"
	"adit/internal/buildinfo"
	releases "adit/internal/update"
	"adit/service"
)

// updateState is the output of adit update.
type updateState struct {
	Current   string `json:"current"`
	Offered   string `json:"offered"`
	Available bool   `json:"available"`
	Applied   bool   `json:"applied"`
}

// UpdateCommand is adit update.
func UpdateCommand(std *stdio.Streams, getenv func(string) string) *cobra.Command {
	var manifest, key string
	sub := func(use, short string, apply bool) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Args: command.Args(0, 0, ""),
			Example: "  adit update " + use + " --manifest https://releases.example.com/adit.json --key W6Kj0Q…=",
			RunE: func(cmd *cobra.Command, _ []string) error {
				if manifest == "" {
					manifest = getenv("ADIT_UPDATE_MANIFEST")
				}
				if key == "" {
					key = getenv("ADIT_UPDATE_KEY")
				}
				return update(cmd.Context(), std, manifest, key, apply)
			},
		}
	}
	g := command.Group("update", "Check for a newer release, and install it",
		`Check for a newer release at an address that you configure; there is none by
default. The release's manifest must be signed with the key that you configure
along with it. A program installed by a package manager or an installer is not
changed.`,
		sub("check", "Show whether a newer release is available", false),
		sub("apply", "Install the newer release, and roll back if the daemon is unhealthy with it", true),
	)
	g.PersistentFlags().StringVar(&manifest, "manifest", "", "URL of the manifest (or ADIT_UPDATE_MANIFEST)")
	g.PersistentFlags().StringVar(&key, "key", "", "public key of the release, in base64 (or ADIT_UPDATE_KEY)")
	return g
}

func update(ctx context.Context, std *stdio.Streams, address, keyText string, apply bool) error {
	if address == "" || keyText == "" {
		return command.Usagef("give the URL of the manifest and the key that signs it, with --manifest and --key")
	}
	key, err := releases.ParseKey(keyText)
	if err != nil {
		return err
	}
	c := &http.Client{Timeout: 10 * time.Minute}
	m, err := releases.Fetch(ctx, c, address, key)
	if err != nil {
		return err
	}
	state := updateState{Current: buildinfo.Get().Version, Offered: m.Version}
	state.Available = releases.Newer(state.Offered, state.Current)
	if state.Available {
		if _, err := m.For(buildinfo.Get().Platform); err != nil {
			return err
		}
	}
	if apply && state.Available {
		if err := applyUpdate(ctx, c, address, m); err != nil {
			return err
		}
		state.Applied = true
	}
	return std.Print(state, func(w io.Writer) {
		switch {
		case state.Applied:
			fmt.Fprintf(w, "adit %s has replaced %s.\n", state.Offered, state.Current)
		case state.Available:
			fmt.Fprintf(w, "adit %s is available; this is %s. To install it: adit update apply\n", state.Offered, state.Current)
		default:
			fmt.Fprintf(w, "adit %s is the newest release.\n", state.Current)
		}
	})
}

func applyUpdate(ctx context.Context, c *http.Client, address string, m releases.Manifest) error {
	exe, err := executable()
	if err != nil {
		return err
	}
	if releases.Managed(exe) {
		return fmt.Errorf("%s was installed by a package or an installer; update it the same way", exe)
	}
	program, err := releases.Download(ctx, c, address, m, buildinfo.Get().Platform)
	if err != nil {
		return err
	}
	restart := func(ctx context.Context) error { return runs(ctx, exe) } // no service runs it
	if service.Runs(ctx, exe) {
		restart = func(ctx context.Context) error {
			_, err := service.Restart(ctx)
			return err
		}
	}
	return releases.Replace(ctx, exe, program, restart)
}

// runs returns why the program exe cannot be run at all, for instance because it is for another
// processor, or on a file system that does not allow execution.
func runs(ctx context.Context, exe string) error {
	out, err := exec.CommandContext(ctx, exe, "version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("`%s version` says %w %s", exe, err, bytes.TrimSpace(out[:min(len(out), 200)]))
	}
	return nil
}
