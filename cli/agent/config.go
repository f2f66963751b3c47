package agent

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/stdio"
	"adit/internal/visible"
	"adit/localapi/client"
)

// ConfigCommand is adit config.
func ConfigCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Show the current settings, and where each one comes from",
		Example: `  adit config
  adit config --json | jq '.settings[] | select(.source != "default")'`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := find.Client(cmd.Context())
			if err != nil {
				return err
			}
			cfg, err := c.Config(cmd.Context())
			if err != nil {
				return err
			}
			return std.PrintPage(cfg, func(w io.Writer) {
				note := ""
				if !cfg.ConfigFileExists {
					note = " (not there)"
				}
				fmt.Fprintf(w, "Config file\t%s%s\n", cfg.ConfigFile, note)
				fmt.Fprintf(w, "State folder\t%s\n", cfg.StateDir)
				if cfg.Error != nil {
					fmt.Fprintf(w, "Mistake\t%s\n", mistakeText(*cfg.Error))
				}
				for _, s := range cfg.Settings {
					fmt.Fprintf(w, "%s\t%s\n", s.Key, strings.TrimLeft(settingText(s.Value)+" ("+s.Source+")", " "))
				}
			})
		},
	}
}

// mistakeText says what is wrong with adit.toml, and where.
func mistakeText(e client.ConfigError) string {
	text := visible.Text(e.Message)
	if e.Key != "" {
		text = visible.Text(e.Key) + ": " + text
	}
	if e.Line > 0 {
		text = fmt.Sprintf("line %d: %s", e.Line, text)
	}
	return text
}

// settingText formats a setting's value for a person.
func settingText(value any) string {
	list, ok := value.([]any)
	if !ok {
		return visible.Text(fmt.Sprint(value))
	}
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = visible.Text(fmt.Sprint(list[i]))
	}
	return strings.Join(texts, ", ")
}
