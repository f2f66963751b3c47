package agent

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/stdio"
	"adit/internal/bytesize"
	"adit/internal/visible"
	"adit/localapi/client"
)

// SpeedCommand is adit speed.
func SpeedCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	return &cobra.Command{
		Use:   "speed",
		Short: "Measure the speed of the connection to the relay",
		Long: `Measure the speed of the connection to the relay, over DTLS and over TLS.

The test transfers data for about ten seconds, which counts towards the client's
traffic at the relay. It also tells if the network slows down UDP.`,
		Example: `  adit speed
  adit speed --json | jq '.items[].bytes_per_second'`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := find.Client(cmd.Context())
			if err != nil {
				return err
			}
			if std.Terminal && !std.JSON {
				fmt.Fprintln(std.Err, "Moving bytes to the relay and back, for some ten seconds …")
			}
			speeds, err := c.MeasureSpeed(cmd.Context())
			if err != nil {
				return err
			}
			return std.PrintPage(speeds, func(w io.Writer) { writeSpeeds(w, speeds) })
		},
	}
}

func writeSpeeds(w io.Writer, speeds client.SpeedReport) {
	for _, s := range speeds.Items {
		use := ""
		if s.InUse {
			use = ", in use"
		}
		fmt.Fprintf(w, "%s%s\t%s\n", strings.ToUpper(s.Transport), use, visible.Text(speedText(s)))
	}
	if speeds.Advice != "" {
		fmt.Fprintf(w, "\t  -> %s\n", visible.Text(speeds.Advice))
	}
}

// speedText describes the measurements of one transport.
func speedText(s client.Speed) string {
	if s.Error != "" {
		return "not measured: " + s.Error
	}
	return fmt.Sprintf("%s/s from visitors, %s/s to visitors, round trip %s",
		bytesize.Text(s.BytesPerSecond.In), bytesize.Text(s.BytesPerSecond.Out), roundTrip(s.RTTMillis))
}
