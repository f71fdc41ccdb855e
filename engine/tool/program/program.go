// Package program holds what the tools that start programs of the system do alike: commands, and MCP servers of the
// machine. It keeps no state; each function may be called by several goroutines at once, for different programs.
package program

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// Inherited gives the variables that a program gets of flowctl's environment, those of them that are set.
func Inherited() map[string]string {
	names := []string{"HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ"}
	if runtime.GOOS == "windows" {
		names = append(names, "SYSTEMROOT")
	}
	vars := map[string]string{}
	for _, name := range names {
		if v, ok := os.LookupEnv(name); ok {
			vars[name] = v
		}
	}
	return vars
}

// Environ gives variables as os/exec takes them, in the order of their names.
func Environ(vars map[string]string) []string {
	list := make([]string, 0, len(vars))
	for _, name := range machine.SortedNames(vars) {
		list = append(list, name+"="+vars[name])
	}
	return list
}

// BatchFile says whether a program is one that its system, named as in runtime.GOOS, runs by a shell, which does not keep
// arguments apart.
func BatchFile(system, path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return system == "windows" && (ext == ".bat" || ext == ".cmd")
}

// Folder gives the folder that user, named as for people, runs in: dir as it is written, from the folder of the flow; "" is
// the flow's own. Where it cannot be used, the error is a *tool.Error with the status Unavailable.
func Folder(flow, dir, user string) (string, error) {
	written := dir
	if written == "" {
		written = "of the flow"
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(flow, dir)
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return "", tool.Unavailablef("the folder %s, which %s runs in, is not there; make it and go on", written, user)
	case err != nil:
		return "", tool.Unavailablef("the folder %s, which %s runs in, cannot be opened: %w", written, user, Cause(err))
	case !info.IsDir():
		return "", tool.Unavailablef("%s, which %s runs in, is not a folder", written, user)
	}
	return dir, nil
}

// Cause gives a system's error without the path, which is told as it is written in the flow.
func Cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
