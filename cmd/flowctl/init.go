package main

import (
	_ "embed"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

//go:embed first_flow.yaml
var firstFlow []byte

func (a *app) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR|FILE]",
		Short: "Write a first flow that runs",
		Long: `Write flow.yaml, a small flow with comments that validates and runs without a model: into the working folder, into DIR,
or to FILE when its name ends in .yaml. A file that exists is never overwritten.`,
		Example: "  flowctl init\n  flowctl init support\n  flowctl init flows/order.yaml",
		Args:    args(0, 1, ""),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.writeFlow("flow.yaml")
			}
			return a.writeFlow(flowFileName(args[0]))
		},
	}
}

// flowFileName gives the file that init writes for a name that may be a folder's.
func flowFileName(name string) string {
	if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" {
		return name
	}
	return filepath.Join(name, "flow.yaml")
}

func (a *app) writeFlow(name string) error {
	path := a.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return usagef("choose another place", "the folder of %s cannot be made: %v", name, reason(err))
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, os.ErrExist) {
		return usagef("it was left as it is; choose another name", "%s exists", name)
	}
	if err != nil {
		return usagef("choose another place", "%s cannot be written: %v", name, reason(err))
	}
	_, err = file.Write(firstFlow)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if a.json() {
		a.printJSON(struct {
			File string `json:"file"`
		}{name})
		return nil
	}
	a.outln("wrote " + name + "; go on with:")
	a.outln("  " + a.command("validate", name))
	a.outln("  " + a.command("run", name, "-i", "message=I need help with an invoice"))
	a.outln("  " + a.command("graph", name))
	return nil
}
