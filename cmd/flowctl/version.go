package main

import (
	"runtime"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  flowctl version\n  flowctl version -o json",
		Args:    args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			if a.json() {
				a.printJSON(struct {
					Version string `json:"version"`
					Go      string `json:"go"`
				}{a.Version, runtime.Version()})
				return nil
			}
			a.outln("flowctl " + a.Version)
			return nil
		},
	}
}
