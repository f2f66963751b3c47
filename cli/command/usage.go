package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"adit/internal/nearest"
)

// UsageError is a command line that cannot be understood.
type UsageError struct{ message string }

func (e *UsageError) Error() string { return e.message }

// Usagef returns a *UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}

// usageHelp returns the command that shows how to use cmd.
func usageHelp(cmd *cobra.Command) string {
	if cmd.Name() == "help" && len(cmd.Commands()) == 0 {
		cmd = cmd.Root()
	}
	return "adit help" + strings.TrimPrefix(cmd.CommandPath(), cmd.Root().CommandPath())
}

// flagMistake says in plain words what is wrong with a flag.
func flagMistake(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var bad *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			return Usagef("%s has no flag -%s", cmd.CommandPath(), name)
		}
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		})
		if like := nearest.Of(strings.ReplaceAll(name, "-", "_"), known); like != "" {
			return Usagef("%s has no flag --%s; did you mean --%s?", cmd.CommandPath(), name, like)
		}
		return Usagef("%s has no flag --%s", cmd.CommandPath(), name)
	case errors.As(err, &missing):
		return Usagef("--%s needs a value", missing.GetFlag().Name)
	case errors.As(err, &bad):
		wanted := map[string]string{
			"int": "a number", "bool": "true or false", "duration": "a duration such as 90s or 24h",
		}[bad.GetFlag().Value.Type()]
		if wanted != "" {
			return Usagef("--%s: %q is not %s", bad.GetFlag().Name, bad.GetValue(), wanted)
		}
		if why := errors.Unwrap(bad); why != nil { // said by a flag's type of ours
			return Usagef("--%s: %s", bad.GetFlag().Name, why)
		}
	}
	return Usagef("%s", err)
}

// NoCommand returns the error for a subcommand that cmd does not have.
func NoCommand(cmd *cobra.Command, name string) error {
	names := childNames(cmd)
	if like := nearest.Of(name, names); like != "" {
		return Usagef("%s has no command %q; did you mean %q?", cmd.CommandPath(), name, like)
	}
	if cmd.HasParent() {
		return Usagef("%s has no command %q; there are %s", cmd.CommandPath(), name, strings.Join(names, ", "))
	}
	return Usagef("%s has no command %q", cmd.CommandPath(), name)
}

// needsCommand is run by a command that only has subcommands, if none of them was given.
func needsCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return NoCommand(cmd, args[0])
	}
	return Usagef("%s needs a command: %s", cmd.CommandPath(), strings.Join(childNames(cmd), ", "))
}

func childNames(cmd *cobra.Command) []string {
	var names []string
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
		}
	}
	return names
}

// describe is adit help: it shows the page of the command that args name.
func describe(cmd *cobra.Command, args []string) error {
	about, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		if about == nil || len(rest) == 0 {
			about, rest = cmd.Root(), args
		}
		if about.HasAvailableSubCommands() {
			return NoCommand(about, rest[0])
		}
		return Usagef("%s has no subcommands, but got %q", about.CommandPath(), rest[0])
	}
	about.InitDefaultHelpFlag()
	return about.Help()
}
