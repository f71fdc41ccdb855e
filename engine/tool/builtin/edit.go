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
	if err := d.mayWrite(args.Path); err != nil {
		return written{}, err
	}
	if ctx.Err() != nil { // before anything is made
		return written{}, tool.Undone(ctx, "writing "+show(args.Path))
	}
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

// edit replaces the only occurrence of a passage. Until the new text takes the old one's place nothing is changed, and it
// stops where its time is up.
func (d folder) edit(ctx context.Context, _ tool.Call, args editArgs) (edited, error) {
	if args.Old == args.New {
		return edited{}, tool.Failf("", "old and new are the same, so nothing would change")
	}
	if err := d.mayWrite(args.Path); err != nil {
		return edited{}, err
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
	places := occurrences(text, args.Old)
	if ctx.Err() != nil {
		return edited{}, tool.Undone(ctx, "editing "+show(args.Path))
	}
	if len(places) != 1 {
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

// maxPlaces is how many occurrences of a passage are looked for. Each one may cost the whole length of the passage.
const maxPlaces = 100

// occurrences gives the lines, from 1, where a passage begins, up to maxPlaces. Passages may overlap: which of the two is
// meant is as open as with any other two.
func occurrences(text, passage string) []int {
	var lines []int
	line, from := 1, 0
	for {
		i := strings.Index(text[from:], passage)
		if i < 0 || len(lines) == maxPlaces {
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
		often := fmt.Sprint(len(lines))
		if len(lines) == maxPlaces {
			often = "at least " + often
		}
		return tool.Failf("", "old stands in %s %s times (lines %s); take more of what is around the right one into old, and into new",
			path, often, list)
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

// looseMatch finds the line where a passage begins if blanks and line breaks do not count; 0 if it does not stand there. It
// takes time for each word once (the method of Knuth, Morris and Pratt), since files may repeat the same word for ever.
func looseMatch(text, passage string) int {
	words := strings.Fields(passage)
	if len(words) == 0 {
		return 0
	}
	// again[i] is how many words at the beginning of the passage stand at the end of its first i+1 words too.
	again := make([]int, len(words))
	for i, same := 1, 0; i < len(words); i++ {
		for same > 0 && words[i] != words[same] {
			same = again[same-1]
		}
		if words[i] == words[same] {
			same++
		}
		again[i] = same
	}
	var begun []int // the lines of the words so far; the passage begins len(words) before the end
	same := 0
	for number, line := range strings.Split(text, "\n") {
		for _, word := range strings.Fields(line) {
			begun = append(begun, number+1)
			for same > 0 && word != words[same] {
				same = again[same-1]
			}
			if word == words[same] {
				same++
			}
			if same == len(words) {
				return begun[len(begun)-len(words)]
			}
		}
	}
	return 0
}
