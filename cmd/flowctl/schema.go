package main

import (
	"github.com/spf13/cobra"

	"flowctl/flows"
)

func (a *app) schemaCommand() *cobra.Command {
	var reference bool
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of flow files",
		Long: `Print the JSON Schema of flow files, for editors: with the YAML language server, put this first in a flow file:
  # yaml-language-server: $schema=flow.schema.json`,
		Example: "  flowctl schema > flow.schema.json\n  flowctl schema --reference > reference.md",
		Args:    args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			cat := a.catalog(a.toolKinds())
			switch {
			case reference && a.json():
				a.printJSON(flows.Reference(cat))
			case reference:
				_, err := a.Stdout.Write([]byte(flows.Reference(cat)))
				return err
			default:
				_, err := a.Stdout.Write(flows.JSONSchema(cat))
				return err
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&reference, "reference", false, "print the reference of all keys as Markdown instead")
	return cmd
}
