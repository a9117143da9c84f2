package filescmd

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/files/filesapi"
)

func newTokenCommand(a *app.App) *cobra.Command {
	var g filesapi.TokenSpec
	cmd := &cobra.Command{
		Use:   "token SCOPE...",
		Short: "Print a token for tests of the API",
		Long: `Token prints a JSON Web Token that is signed with files.secret of the configuration.
Each SCOPE is read:ENTITY, write:ENTITY, read:* or write:*. Use such a token for tests
and scripts. Users get their tokens from your identity provider: see files.keys.`,
		Example: `  export TOKEN=$(pawl files token --subject ann read:album-7 write:album-7)`,
		RunE: func(_ *cobra.Command, scopes []string) error {
			if len(scopes) == 0 {
				return app.Usage("missing SCOPE: want read:ENTITY, write:ENTITY, read:* or write:*")
			}
			g.Scopes = scopes
			return printToken(a, g)
		},
	}
	cmd.Flags().StringVar(&g.Subject, "subject", "me", "`name` of the token's subject, for rate limits and the log")
	cmd.Flags().DurationVar(&g.Life, "for", time.Hour, "lifetime of the token")
	return cmd
}

func printToken(a *app.App, g filesapi.TokenSpec) error {
	if g.Life <= 0 {
		return app.Usage("--for %s: want a duration above 0", g.Life)
	}
	c, err := a.Parts.LoadWithoutSources(a.ConfigFile, os.LookupEnv)
	if err != nil {
		return err
	}
	switch {
	case c.Files == nil:
		return errNotConfigured(c)
	case c.Files.Keys != "":
		return c.At("files.keys", errors.New("is set, so an identity provider signs tokens: get a token there"))
	}
	g.Audience, g.Issuer = c.Files.Audience, c.Files.Issuer
	token, err := filesapi.SignToken([]byte(c.Files.Secret.Reveal()), g)
	if err != nil {
		return app.Misconfigured(err)
	}
	if a.JSON {
		return a.PrintJSON(map[string]string{"token": token})
	}
	_, err = fmt.Fprintln(a.Out, token)
	return err
}
