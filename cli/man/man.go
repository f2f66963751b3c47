// Package man writes the manual pages for a tree of commands.
package man

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"adit/cli/command"
)

// Command returns the command that writes a man page for each command; it is used to build
// packages.
func Command() *cobra.Command {
	return &cobra.Command{
		Use:    "man FOLDER",
		Short:  "Write man pages into a folder",
		Hidden: true,
		Args:   command.Args(1, 1, "FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("make the folder of man pages: %w", err)
			}
			return writePages(cmd.Root(), args[0])
		},
	}
}

func writePages(cmd *cobra.Command, dir string) error {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(manPage(cmd)), 0o644); err != nil {
		return fmt.Errorf("write a man page: %w", err)
	}
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			if err := writePages(child, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// manPage returns a command's page in the man macros (man-pages(7)).
func manPage(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	dashed := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" adit \"User commands\"\n", roff(strings.ToUpper(dashed)))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(dashed), roff(cmd.Short))
	usage := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		usage = cmd.CommandPath() + " [command]"
	}
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(usage))
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	b.WriteString(".SH DESCRIPTION\n.nf\n" + roffLines(long) + ".fi\n")
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n.nf\n" + roffLines(cmd.Example) + ".fi\n")
	}
	if flags := cmd.NonInheritedFlags(); flags.HasAvailableFlags() {
		b.WriteString(".SH OPTIONS\n" + manFlags(flags))
	}
	if flags := cmd.InheritedFlags(); flags.HasAvailableFlags() {
		b.WriteString(".SH OPTIONS OF ALL COMMANDS\n" + manFlags(flags))
	}
	var others []string
	if cmd.HasParent() {
		others = append(others, strings.ReplaceAll(cmd.Parent().CommandPath(), " ", "-"))
	}
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			others = append(others, strings.ReplaceAll(child.CommandPath(), " ", "-"))
		}
	}
	b.WriteString(".SH EXIT STATUS\n0 success, 1 failure, 2 wrong usage.\n.SH SEE ALSO\n")
	for i, other := range others {
		end := ","
		if i == len(others)-1 {
			end = ""
		}
		fmt.Fprintf(&b, ".BR %s (1)%s\n", roff(other), end)
	}
	return b.String()
}

func manFlags(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind := f.Value.Type(); kind != "bool" {
			name += " " + strings.ToUpper(kind)
		}
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(name), roff(f.Usage+manDefault(f)))
	})
	return b.String()
}

var defaultOf = regexp.MustCompile(` \(default .*\)$`)

// manDefault returns a flag's default as the help shows it, omitting empty and false values.
func manDefault(f *pflag.Flag) string {
	one := pflag.NewFlagSet("", pflag.ContinueOnError)
	one.AddFlag(f)
	_, said, _ := strings.Cut(strings.TrimSpace(one.FlagUsages()), f.Usage)
	return defaultOf.FindString(said)
}

// roff escapes text so that backslashes and hyphens stand for themselves.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

func roffLines(s string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(s, "\n") {
		b.WriteString(roff(line) + "\n")
	}
	return b.String()
}
