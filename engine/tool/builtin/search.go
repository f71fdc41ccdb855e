package builtin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"flowctl/engine/tool"
)

const (
	maxHits    = 200  // of one search
	maxPattern = 1000 // bytes of a pattern
	maxLine    = 300  // bytes of a line that is shown

	maxAtOnce = 1 << 20 // steps of a pattern over a line that are made without a look at the clock

	// kindTooMuch is the kind of problem of a search that ran out of time.
	kindTooMuch = "too_much"
)

type searchArgs struct {
	Pattern string `json:"pattern" jsonschema:"description=Regular expression (RE2) that is held against each line; (?i) in front ignores case,minLength=1,maxLength=1000"`
	Glob    string `json:"glob,omitempty" jsonschema:"description=Which files to search: *.md by name\\, or docs/**/*.md by path; all if left out"`
}

type found struct {
	Hits    []hit `json:"hits"`
	More    bool  `json:"more"`
	Skipped int64 `json:"skipped"`
}

type hit struct {
	Path string `json:"path"`
	Line int64  `json:"line"`
	Text string `json:"text"`
}

// search walks through the folder in the order of names.
func (d folder) search(ctx context.Context, _ tool.Call, args searchArgs) (found, error) {
	if len(args.Pattern) > maxPattern {
		return found{}, tool.Failf("", "the pattern has %d bytes, more than %d; search for something shorter", len(args.Pattern), maxPattern)
	}
	pattern, size, err := compile(args.Pattern)
	if err != nil {
		return found{}, tool.Failf("", "the pattern cannot be read: %s; a character such as ( or . that is meant itself has a \\ in front",
			strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if _, err := path.Match(args.Glob, ""); err != nil {
		return found{}, tool.Failf("", "the glob %s cannot be read; write it like *.md or docs/**/*.md", show(args.Glob))
	}
	root, err := d.open(false)
	if err != nil {
		return found{}, err
	}
	defer root.Close()
	s := search{ctx: ctx, root: root, pattern: pattern, size: size, glob: args.Glob, out: found{Hits: []hit{}}}
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return s.visit(name, entry, err)
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		// Its own kind, since a timeout would be tried again, and the same search takes the same time.
		return found{}, tool.Failf(kindTooMuch, "there is too much to search in the time that there is; choose fewer files with glob")
	case err != nil && !errors.Is(err, fs.SkipAll):
		return found{}, err
	}
	return s.out, nil
}

// compile reads a pattern. Its size is the number of steps that it takes at most for one character.
func compile(pattern string) (compiled *regexp.Regexp, size int, err error) {
	if compiled, err = regexp.Compile(pattern); err != nil {
		return nil, 0, err
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, 0, err
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, 0, err
	}
	return compiled, len(program.Inst), nil
}

// search is one search under way.
type search struct {
	ctx     context.Context
	root    *os.Root
	pattern *regexp.Regexp
	size    int // of the pattern
	glob    string
	out     found
}

// visit looks at one file or folder. One that cannot be opened is skipped; links are not followed, so that nothing is
// found twice.
func (s *search) visit(name string, entry fs.DirEntry, err error) error {
	hidden := name != "." && strings.HasPrefix(path.Base(name), ".")
	switch {
	case err != nil && name == ".":
		return tool.Unavailablef("the folder that this tool works in cannot be read: %w", err)
	case err != nil && !hidden:
		s.out.Skipped++
		return fs.SkipDir
	case entry.IsDir() && hidden:
		return fs.SkipDir
	case hidden || !entry.Type().IsRegular() || !globMatches(s.glob, name):
		return nil
	}
	data, ok := s.text(name)
	if !ok {
		s.out.Skipped++
		return nil
	}
	return s.lines(name, data)
}

// text reads a file if it is a text of a size that can be read.
func (s *search) text(name string) ([]byte, bool) {
	f, info, err := open(s.root, filepath.FromSlash(name))
	if err != nil {
		return nil, false
	}
	defer f.Close()
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, false
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	return data, err == nil && len(data) <= maxFile && utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
}

// lines takes the lines of a file that the pattern fits, until there are enough.
func (s *search) lines(name string, data []byte) error {
	for number := int64(1); len(data) > 0; number++ {
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		line = bytes.TrimSuffix(line, []byte("\r"))
		at := s.find(line)
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		if at == nil {
			continue
		}
		if len(s.out.Hits) == maxHits {
			s.out.More = true
			return fs.SkipAll
		}
		s.out.Hits = append(s.out.Hits, hit{Path: name, Line: number, Text: excerpt(string(line), at[0])})
	}
	return nil
}

// find holds the pattern against a line. A line for which that may take long is read rune by rune, so that it can be given up
// in its middle; what is found then does not count.
func (s *search) find(line []byte) []int {
	if len(line)*s.size <= maxAtOnce {
		return s.pattern.FindIndex(line)
	}
	return s.pattern.FindReaderIndex(&untilEnd{ctx: s.ctx, runes: bytes.NewReader(line)})
}

// untilEnd gives runes until its context ends.
type untilEnd struct {
	ctx   context.Context
	runes io.RuneReader
}

func (u *untilEnd) ReadRune() (rune, int, error) {
	if u.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	return u.runes.ReadRune()
}

// excerpt shortens a long line to what is around a place in it.
func excerpt(line string, at int) string {
	if len(line) <= maxLine {
		return line
	}
	from := max(0, min(at-maxLine/3, len(line)-maxLine))
	to := from + maxLine
	for from > 0 && !utf8.RuneStart(line[from]) {
		from--
	}
	for to < len(line) && !utf8.RuneStart(line[to]) {
		to--
	}
	short := line[from:to]
	if from > 0 {
		short = "…" + short
	}
	if to < len(line) {
		short += "…"
	}
	return short
}

// globMatches says whether a file is among the chosen ones: by its name, or by its path where the glob has a slash.
func globMatches(glob, name string) bool {
	switch {
	case glob == "":
		return true
	case !strings.Contains(glob, "/"):
		return segmentMatches(glob, path.Base(name))
	}
	return pathMatches(strings.Split(strings.TrimPrefix(glob, "./"), "/"), strings.Split(name, "/"))
}

// pathMatches holds the parts of a glob against those of a path; ** stands for any number of folders.
func pathMatches(glob, name []string) bool {
	// matches[j] says whether the parts of glob so far fit the first j parts of name.
	matches := make([]bool, len(name)+1)
	matches[0] = true
	for _, part := range glob {
		next := make([]bool, len(name)+1)
		for j := range next {
			if part == "**" {
				next[j] = matches[j] || j > 0 && next[j-1]
			} else {
				next[j] = j > 0 && matches[j-1] && segmentMatches(part, name[j-1])
			}
		}
		matches = next
	}
	return matches[len(name)]
}

func segmentMatches(glob, name string) bool {
	ok, err := path.Match(glob, name)
	return err == nil && ok
}
