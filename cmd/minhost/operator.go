package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/operators"
)

func newOperatorCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "operator",
		Short: "Say which accounts' runners may call the helper",
		Long: "Say which accounts' runners may call the helper. It takes effect at the next call: nobody\n" +
			"has to log in again. Members of the group minhost are operators too; root always is.",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newOperatorChange(env, "add", "Let an account's runners call the helper", operators.List.Add),
		newOperatorChange(env, "remove", "Take that right away again (its boxes stay)", operators.List.Remove),
		newOperatorList(env),
	)
	return cmd
}

func newOperatorChange(env *environment, verb, short string, change func(operators.List, int) (operators.List, bool)) *cobra.Command {
	return &cobra.Command{
		Use:   verb + " USER",
		Short: short,
		Args:  usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needRoot(env, cmd, args); err != nil {
				return err
			}
			uid, err := env.uidOf(args[0])
			if err != nil {
				return fmt.Errorf("operator %s: %w", verb, err)
			}
			files, err := env.Platform.Files()
			if err != nil {
				return fmt.Errorf("operator %s: %w", verb, err)
			}
			old, err := operators.Read(files, env.Platform.Operators)
			if err != nil {
				return fmt.Errorf("operator %s: %w", verb, err)
			}
			now, changed := change(old, uid)
			if !changed {
				_, err := fmt.Fprintf(env.Stdout, "nothing to do: %s\n", membership(now, uid))
				return err
			}
			err = operators.Write(files, env.Platform.Operators, now)
			if errors.Is(err, fs.ErrNotExist) {
				return hinted{fmt.Errorf("operator %s: this host is not prepared yet", verb), "minhost finalize-install"}
			}
			if err != nil {
				return fmt.Errorf("operator %s: %w", verb, err)
			}
			_, err = fmt.Fprintln(env.Stdout, membership(now, uid))
			return err
		},
	}
}

func membership(list operators.List, uid int) string {
	if list.Has(uid) {
		return fmt.Sprintf("uid %d is an operator", uid)
	}
	return fmt.Sprintf("uid %d is no operator", uid)
}

func newOperatorList(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the operators' accounts",
		Args:  usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needRoot(env, cmd, args); err != nil {
				return err
			}
			files, err := env.Platform.Files()
			if err != nil {
				return fmt.Errorf("operator list: %w", err)
			}
			list, err := operators.Read(files, env.Platform.Operators)
			if err != nil {
				return fmt.Errorf("operator list: %w", err)
			}
			rows := make([][]string, 0, len(list))
			for _, uid := range list {
				rows = append(rows, []string{strconv.Itoa(uid), env.nameOf(uid)})
			}
			return writeTable(env.Stdout, []string{"UID", "USER"}, rows)
		},
	}
}

// needRoot refuses early and says how to go on, before anything is read from a folder that only
// root can see.
func needRoot(env *environment, cmd *cobra.Command, args []string) error {
	if env.EUID == 0 {
		return nil
	}
	again := "sudo " + cmd.CommandPath()
	for _, a := range args {
		again += " " + api.Text(a)
	}
	return hinted{fmt.Errorf("%s: only root may read or change the operators", cmd.Name()), again}
}

// uidOf takes a user name or a number. A number needs no account: it may be in a directory
// service that is not reachable now.
func (env *environment) uidOf(name string) (int, error) {
	if uid, err := strconv.Atoi(name); err == nil && uid >= 0 && uid < operators.MaxUID {
		return uid, nil
	}
	u, err := env.LookupUser(name)
	if err != nil {
		return 0, hinted{fmt.Errorf("user %s: no such account", api.Text(name)), "give the number that id -u prints for the account"}
	}
	return strconv.Atoi(u.Uid)
}

func (env *environment) nameOf(uid int) string {
	u, err := env.LookupUserID(strconv.Itoa(uid))
	var unknown user.UnknownUserIdError
	switch {
	case errors.As(err, &unknown):
		return ""
	case err != nil:
		return "(" + err.Error() + ")"
	}
	return u.Username
}
