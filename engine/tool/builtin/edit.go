package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"flowctl/engine/tool"
)

type appendArgs struct {
	Path    string `json:"path" jsonschema:"description=Path of the file below the folder,minLength=1"`
	Content string `json:"content" jsonschema:"description=The text to add\\, with its line breaks,minLength=1"`
}

type editArgs struct {
	Path string `json:"path" jsonschema:"description=Path of the file below the folder,minLength=1"`
	Old  string `json:"old" jsonschema:"description=The passage as it stands in the file\\, blanks and line breaks included\\, with enough around it to stand there only once,minLength=1"`
	New  string `json:"new" jsonschema:"description=The text to put in its place\\, empty to remove it"`
}

type edited struct {
	Replaced int64 `json:"replaced"`
	Bytes    int64 `json:"bytes"`
}

// append adds to the end of a file, in one write.
func (d folder) append(ctx context.Context, _ tool.Call, args appendArgs) (written, error) {
	root, err := d.open(true)
	if err != nil {
		return written{}, err
	}
	defer root.Close()
	mode, size, err := target(root, args.Path)
	if err != nil {
		return written{}, err
	}
	if size+int64(len(args.Content)) > maxFile {
		return written{}, tool.Failf("", "%s has %d bytes and would have more than the %d that a file may have; go on in another file",
			show(args.Path), size, maxFile)
	}
	dir := filepath.Dir(args.Path)
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return written{}, trouble(args.Path, err)
	}
	f, err := root.OpenFile(args.Path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|nonBlocking, mode)
	if err != nil {
		return written{}, trouble(args.Path, err)
	}
	if ctx.Err() != nil {
		_ = f.Close()
		return written{}, tool.Undone(ctx, "writing "+show(args.Path))
	}
	n, err := f.WriteString(args.Content)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	switch {
	case err != nil && n == 0:
		return written{}, trouble(args.Path, err)
	case err != nil: // what was written may be there or not, when the machine starts again
		return written{}, &tool.Error{Status: tool.Unknown, Err: fmt.Errorf("%d of %d bytes were added to %s, and then: %w",
			n, len(args.Content), show(args.Path), err)}
	}
	syncDir(root, dir)
	return written{Bytes: int64(n)}, nil
}

// edit replaces the only occurrence of a passage.
func (d folder) edit(ctx context.Context, _ tool.Call, args editArgs) (edited, error) {
	if args.Old == args.New {
		return edited{}, tool.Failf("", "old and new are the same, so nothing would change")
	}
	root, err := d.open(false)
	if err != nil {
		return edited{}, err
	}
	defer root.Close()
	if _, _, err := target(root, args.Path); err != nil {
		return edited{}, err
	}
	text, mode, err := readText(root, args.Path)
	if err != nil {
		return edited{}, err
	}
	if places := occurrences(text, args.Old); len(places) != 1 {
		return edited{}, notOnce(text, args, places)
	}
	changed := strings.Replace(text, args.Old, args.New, 1)
	if len(changed) > maxFile {
		return edited{}, tool.Failf("", "%s would have %d bytes, more than the %d that a file may have", show(args.Path), len(changed), maxFile)
	}
	if err := replace(ctx, root, args.Path, changed, mode); err != nil {
		return edited{}, err
	}
	return edited{Replaced: 1, Bytes: int64(len(changed))}, nil
}

// occurrences gives the lines, from 1, where a passage begins. Passages may overlap: which of the two is meant is as open
// as with any other two.
func occurrences(text, passage string) []int {
	var lines []int
	line, from := 1, 0
	for {
		i := strings.Index(text[from:], passage)
		if i < 0 {
			return lines
		}
		line += strings.Count(text[from:from+i], "\n")
		lines = append(lines, line)
		if text[from+i] == '\n' {
			line++
		}
		from += i + 1
	}
}

// notOnce says why a passage cannot be replaced, and what to do about it.
func notOnce(text string, args editArgs, lines []int) error {
	path := show(args.Path)
	if len(lines) > 1 {
		const most = 10 // lines that are told
		list := strings.Trim(strings.ReplaceAll(fmt.Sprint(lines[:min(len(lines), most)]), " ", ", "), "[]")
		if len(lines) > most {
			list += ", …"
		}
		return tool.Failf("", "old stands in %s %d times (lines %s); take more of what is around the right one into old, and into new",
			path, len(lines), list)
	}
	hint := "read the file and copy the passage from it, blanks and line breaks included"
	switch {
	case len(occurrences(text, strings.ReplaceAll(args.Old, "\n", "\r\n"))) > 0:
		hint = `its lines end in \r\n; write these line breaks into old and new`
	case args.New != "" && len(occurrences(text, args.New)) > 0:
		hint = "new stands there already; " + hint
	default:
		if line := looseMatch(text, args.Old); line > 0 {
			hint = fmt.Sprintf("with other blanks or line breaks it begins in line %d; copy it from there", line)
		}
	}
	return tool.Failf("none_found", "old stands in %s 0 times; %s", path, hint)
}

// looseMatch finds the line where a passage begins if blanks and line breaks do not count; 0 if it does not stand there.
func looseMatch(text, passage string) int {
	words := strings.Fields(passage)
	if len(words) == 0 {
		return 0
	}
	type placed struct {
		word string
		line int
	}
	var all []placed
	for i, line := range strings.Split(text, "\n") {
		for _, word := range strings.Fields(line) {
			all = append(all, placed{word, i + 1})
		}
	}
	for i := 0; i+len(words) <= len(all); i++ {
		same := 0
		for same < len(words) && all[i+same].word == words[same] {
			same++
		}
		if same == len(words) {
			return all[i].line
		}
	}
	return 0
}
