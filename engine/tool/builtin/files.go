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

func forFiles(name string) bool {
	return name == "read_file" || name == "write_file" || name == "list_dir"
}

func (d folder) functions() []tool.Function {
	return []tool.Function{
		tool.Func("read_file", "Read a text file.", machine.EffectRead, d.read),
		tool.Func("write_file", "Write a text file, replacing what it held.", machine.EffectIdempotent, d.write),
		tool.Func("list_dir", "List the files and folders of a folder.", machine.EffectRead, d.list),
	}
}

func (d folder) read(_ context.Context, _ tool.Call, args pathArgs) (string, error) {
	root, err := d.open(false)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, info, err := open(root, args.Path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info.IsDir() {
		return "", tool.Failf("", "%s is a folder; list_dir lists it", show(args.Path))
	}
	if !info.Mode().IsRegular() {
		return "", notPlain(args.Path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", trouble(args.Path, err)
	case len(data) > maxFile:
		return "", tool.Failf("", "%s is larger than %d bytes, too large to be read at once", show(args.Path), maxFile)
	case !utf8.Valid(data):
		return "", tool.Failf("", "%s is not a text file: its bytes are not UTF-8", show(args.Path))
	}
	return string(data), nil
}

// write puts the text into a new file beside the old one and then takes its place, so that nobody ever sees half of it.
func (d folder) write(ctx context.Context, _ tool.Call, args writeArgs) (written, error) {
	if len(args.Content) > maxFile {
		return written{}, tool.Failf("", "the content has %d bytes, more than the %d that a file may have", len(args.Content), maxFile)
	}
	root, err := d.open(true)
	if err != nil {
		return written{}, err
	}
	defer root.Close()
	mode := fs.FileMode(0o644)
	switch info, err := root.Lstat(args.Path); {
	case err == nil && info.IsDir():
		return written{}, tool.Failf("", "%s is a folder", show(args.Path))
	case err == nil && !info.Mode().IsRegular():
		return written{}, notPlain(args.Path)
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return written{}, trouble(args.Path, err)
	}
	dir := filepath.Dir(args.Path)
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return written{}, trouble(args.Path, err)
	}
	temp := filepath.Join(dir, ".flowctl-"+rand.Text())
	if err := fill(root, temp, args.Content, mode); err != nil {
		_ = root.Remove(temp) // it may not exist; the error that counts is the other one
		return written{}, trouble(args.Path, err)
	}
	if ctx.Err() != nil {
		_ = root.Remove(temp)
		return written{}, tool.Undone(ctx, "writing "+show(args.Path))
	}
	if err := root.Rename(temp, args.Path); err != nil {
		_ = root.Remove(temp)
		return written{}, trouble(args.Path, err)
	}
	syncDir(root, dir)
	return written{Bytes: int64(len(args.Content))}, nil
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
