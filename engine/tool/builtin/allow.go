package builtin

import (
	"os"
	"path/filepath"
	"strings"
)

// ofFlows are the endings of files that make up a flow and its databases.
var ofFlows = []string{".yaml", ".yml", ".sql", ".db", "-wal", "-shm", "-journal"}

// mayRead refuses a path that leads to a hidden file or through a hidden folder, where keys and histories are kept.
func (d folder) mayRead(path string) error {
	for _, name := range segments(path) {
		if strings.HasPrefix(name, ".") && name != "." && name != ".." {
			return refused("%s is hidden, since %s begins with a dot, and file tools leave hidden files alone; choose another path",
				show(path), show(name))
		}
	}
	return nil
}

// mayWrite refuses in addition a file of the flow itself, where the folder is the flow's: a tool that changes them could
// give itself more rights, or break the run.
func (d folder) mayWrite(path string) error {
	if err := d.mayRead(path); err != nil || !d.holdsFlow() {
		return err
	}
	for _, name := range segments(path) {
		// Windows drops dots and blanks at the end of a name, and some systems know no upper case.
		name = strings.ToLower(strings.TrimRight(name, ". "))
		for _, ending := range ofFlows {
			if strings.HasSuffix(name, ending) {
				return refused("%s may be a part of the flow or its data (it ends in %s), and tools that work in the flow's own folder do not "+
					"change those; choose another name, or give the tool a root of its own, such as root: files", show(path), ending)
			}
		}
	}
	return nil
}

// segments gives the names that a path is made of.
func segments(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == os.PathSeparator })
}

// holdsFlow says whether the flow's folder is the one that the tool works in, or lies below it.
func (d folder) holdsFlow() bool {
	below, err := filepath.Rel(d.path, d.flow)
	return err == nil && below != ".." && !strings.HasPrefix(below, ".."+string(filepath.Separator))
}
