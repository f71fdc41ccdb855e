package builtin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

const (
	maxFile    = 1 << 20 // bytes that are read or written at once
	maxEntries = 1000    // of a listed folder
)

// folder is what file tools work in. Every path goes through os.Root, which follows links only as far as they stay
// inside. It is opened for each call, so that a folder that was replaced is the new one.
type folder struct {
	path string // absolute
	flow string // the flow's own folder, which is never made
}

type pathArgs struct {
	Path string `json:"path" jsonschema:"description=Path of the file below the folder,minLength=1"`
}

type writeArgs struct {
	Path    string `json:"path" jsonschema:"description=Path of the file below the folder,minLength=1"`
	Content string `json:"content" jsonschema:"description=The whole new text of the file"`
}

type written struct {
	Bytes int64 `json:"bytes"`
}

type listArgs struct {
	Path string `json:"path,omitempty" jsonschema:"description=Path of a folder below the folder\\, which is meant itself if left out"`
}

type entry struct {
	Name string `json:"name"`
	Dir  bool   `json:"dir"`
	Size int64  `json:"size"`
}

// forFiles says whether a function works on the files of a folder.
func forFiles(name string) bool {
	return slices.ContainsFunc(folder{}.functions(), func(f tool.Function) bool { return f.Name == name })
}

func (d folder) functions() []tool.Function {
	return []tool.Function{
		tool.Func("read_file", "Read a text file.", machine.EffectRead, d.read),
		tool.Func("write_file", "Write a text file, replacing what it held.", machine.EffectIdempotent, d.write),
		tool.Func("append_file", "Add text to the end of a text file. The file is made if it is not there.", machine.EffectWrite, d.append),
		tool.Func("edit_file", "Replace a passage of a text file that stands in it exactly once.", machine.EffectWrite, d.edit),
		tool.Func("list_dir", "List the files and folders of a folder. Hidden files are left out.", machine.EffectRead, d.list),
		tool.Func("search_files", "Search text files, also those in subfolders, for lines that a regular expression fits. "+
			"Hidden files are left out.", machine.EffectRead, d.search),
	}
}

func (d folder) read(_ context.Context, _ tool.Call, args pathArgs) (string, error) {
	if err := d.mayRead(args.Path); err != nil {
		return "", err
	}
	root, err := d.open(false)
	if err != nil {
		return "", err
	}
	defer root.Close()
	text, _, err := readText(root, args.Path)
	return text, err
}

// readText gives the text of a file, and the file's mode.
func readText(root *os.Root, path string) (string, fs.FileMode, error) {
	f, info, err := open(root, path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	if info.IsDir() {
		return "", 0, tool.Failf("", "%s is a folder; list_dir lists it", show(path))
	}
	if !info.Mode().IsRegular() {
		return "", 0, notPlain(path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", 0, trouble(path, err)
	case len(data) > maxFile:
		return "", 0, tool.Failf("", "%s is larger than %d bytes, too large to be read at once", show(path), maxFile)
	case !utf8.Valid(data):
		return "", 0, tool.Failf("", "%s is not a text file: its bytes are not UTF-8", show(path))
	}
	return string(data), info.Mode().Perm(), nil
}

func (d folder) write(ctx context.Context, _ tool.Call, args writeArgs) (written, error) {
	if len(args.Content) > maxFile {
		return written{}, tool.Failf("", "the content has %d bytes, more than the %d that a file may have", len(args.Content), maxFile)
	}
	if err := d.mayWrite(args.Path); err != nil {
		return written{}, err
	}
	if ctx.Err() != nil { // before a folder is made
		return written{}, tool.Undone(ctx, "writing "+show(args.Path))
	}
	root, err := d.open(true)
	if err != nil {
		return written{}, err
	}
	defer root.Close()
	mode, _, err := target(root, args.Path)
	if err != nil {
		return written{}, err
	}
	if err := root.MkdirAll(filepath.Dir(args.Path), 0o755); err != nil {
		return written{}, trouble(args.Path, err)
	}
	if err := replace(ctx, root, args.Path, args.Content, mode); err != nil {
		return written{}, err
	}
	return written{Bytes: int64(len(args.Content))}, nil
}

// target looks at a file that is to be changed: it must be a plain file, and no link to one. Its size is 0 and its mode
// the usual one where there is none yet.
func target(root *os.Root, path string) (mode fs.FileMode, size int64, err error) {
	switch info, err := root.Lstat(path); {
	case err == nil && info.IsDir():
		return 0, 0, tool.Failf("", "%s is a folder", show(path))
	case err == nil && !info.Mode().IsRegular():
		return 0, 0, notPlain(path)
	case err == nil:
		return info.Mode().Perm(), info.Size(), nil
	case !errors.Is(err, fs.ErrNotExist):
		return 0, 0, trouble(path, err)
	}
	return 0o644, 0, nil
}

// replace puts the text into a new file beside the old one and then takes its place, so that nobody ever sees half of it.
func replace(ctx context.Context, root *os.Root, path, content string, mode fs.FileMode) error {
	dir := filepath.Dir(path)
	temp := filepath.Join(dir, ".flowctl-"+rand.Text())
	if err := fill(root, temp, content, mode); err != nil {
		_ = root.Remove(temp) // it may not exist; the error that counts is the other one
		return trouble(path, err)
	}
	if ctx.Err() != nil {
		_ = root.Remove(temp)
		return tool.Undone(ctx, "writing "+show(path))
	}
	if err := root.Rename(temp, path); err != nil {
		_ = root.Remove(temp)
		return trouble(path, err)
	}
	syncDir(root, dir)
	return nil
}

func fill(root *os.Root, path, content string, mode fs.FileMode) error {
	f, err := root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes a rename durable where the system lets a folder be synced.
func syncDir(root *os.Root, dir string) {
	if f, err := root.Open(dir); err == nil {
		_ = f.Sync()
		_ = f.Close()
	}
}

func (d folder) list(_ context.Context, _ tool.Call, args listArgs) ([]entry, error) {
	path := args.Path
	if path == "" {
		path = "."
	}
	if err := d.mayRead(path); err != nil {
		return nil, err
	}
	root, err := d.open(false)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, info, err := open(root, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !info.IsDir() {
		return nil, tool.Failf("", "%s is not a folder", show(path))
	}
	found, err := f.ReadDir(maxEntries + 1)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, trouble(path, err)
	case len(found) > maxEntries:
		return nil, tool.Failf("", "%s holds more than %d files and folders, too many to be listed", show(path), maxEntries)
	}
	entries := make([]entry, 0, len(found))
	for _, one := range found {
		if strings.HasPrefix(one.Name(), ".") {
			continue
		}
		// What a link leads to inside the folder counts, a link that leads out is listed as itself.
		info, err := root.Stat(filepath.Join(path, one.Name()))
		if err != nil {
			info, err = one.Info()
		}
		if err != nil {
			continue // it has just been removed
		}
		e := entry{Name: one.Name(), Dir: info.IsDir()}
		if info.Mode().IsRegular() {
			e.Size = info.Size()
		}
		entries = append(entries, e)
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	return entries, nil
}

// open opens the folder. For writing it is made when it does not exist.
func (d folder) open(write bool) (*os.Root, error) {
	root, err := os.OpenRoot(d.path)
	if errors.Is(err, fs.ErrNotExist) && write {
		if _, gone := os.Stat(d.flow); gone != nil {
			return nil, tool.Unavailablef("the flow's folder is not there")
		}
		if err = os.MkdirAll(d.path, 0o755); err == nil {
			root, err = os.OpenRoot(d.path)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, tool.Unavailablef("the folder %s that this tool works in is not there", d.path)
	case err != nil:
		return nil, tool.Unavailablef("the folder that this tool works in cannot be opened: %w", err)
	}
	return root, nil
}

// open opens a file or folder for reading, without waiting for anybody who might write to it.
func open(root *os.Root, path string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, nil, trouble(path, err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, nil, trouble(path, err)
	}
	return f, info, nil
}

func notPlain(path string) error {
	return tool.Failf("", "%s is not a plain file, and only those are read and written", show(path))
}

// trouble tells a system's error in terms of the path that was asked for; where the folder lies is nobody's business.
func trouble(path string, err error) error {
	var reason *fs.PathError
	var link *os.LinkError
	cause := err
	switch {
	case errors.As(err, &reason):
		cause = reason.Err
	case errors.As(err, &link):
		cause = link.Err
	}
	switch {
	case filepath.IsAbs(path), strings.HasPrefix(path, "/"):
		return refused("%s is an absolute path; give it relative to the folder, such as notes/today.txt", show(path))
	case strings.Contains(cause.Error(), "escapes from parent"): // os has no error value for it
		return refused("%s leads out of the folder", show(path))
	case errors.Is(err, fs.ErrNotExist):
		return tool.Failf("none_found", "there is no %s", show(path))
	}
	return tool.Failf("", "%s: %w", show(path), cause)
}

func refused(format string, args ...any) error {
	return &tool.Error{Status: tool.Refused, Err: fmt.Errorf(format, args...)}
}

// show quotes a path that a model wrote.
func show(path string) string {
	const longest = 200
	if runes := []rune(path); len(runes) > longest {
		path = string(runes[:longest]) + "…"
	}
	return fmt.Sprintf("%q", path)
}
