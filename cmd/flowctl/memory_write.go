package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

func (a *app) memorySetCommand() *cobra.Command {
	var version int64
	cmd := &cobra.Command{
		Use:   "set NAMESPACE KEY JSON",
		Short: "Set the value of a key",
		Long: `Set the value of a key, whatever it was before. The value is JSON: text stands in double quotes, inside of the quotes
that the shell needs.

--version N sets it only while the key still has this version, and 0 only if there is no such key. Otherwise nothing is
changed, the exit code is 8 and the message says which version it has.`,
		Example: `  flowctl memory set customer/ann name '"Ann"'
  flowctl memory set customer/ann address '{"city": "Bonn"}' --version 2`,
		Args:              args(3, 3, "NAMESPACE, KEY or JSON"),
		ValidArgsFunction: a.completeMemory,
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := expecting(cmd, args, version, 0)
			if err != nil {
				return err
			}
			return a.memorySet(cmd.Context(), w, args[2])
		},
	}
	cmd.Flags().Int64Var(&version, "version", 0, "only while the key has version `N` (0: only if there is no such key)")
	return cmd
}

func (a *app) memoryRmCommand() *cobra.Command {
	var version int64
	cmd := &cobra.Command{
		Use:   "rm NAMESPACE KEY",
		Short: "Take a key out",
		Long: `Take a key and its value out of the memory. With -o json, what it was is printed. The database keeps the key's name and
version, from which it goes on when it is set anew.

--version N does so only while the key still has this version. Otherwise nothing is changed, the exit code is 8 and the
message says which version it has.`,
		Example:           "  flowctl memory rm customer/ann address\n  flowctl memory rm customer/ann address --version 3",
		Args:              args(2, 2, "NAMESPACE or KEY"),
		ValidArgsFunction: a.completeMemory,
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := expecting(cmd, args, version, 1)
			if err != nil {
				return err
			}
			return a.memoryRm(cmd.Context(), w)
		},
	}
	cmd.Flags().Int64Var(&version, "version", 0, "only while the key has version `N`")
	return cmd
}

// expecting makes the write of a command line without its value: namespace, key and the version that --version gives, at
// least the given one.
func expecting(cmd *cobra.Command, args []string, version, least int64) (store.MemoryWrite, error) {
	w := store.MemoryWrite{Namespace: args[0], Key: args[1]}
	if cmd.Flags().Changed("version") {
		if version < least {
			return w, usagef("see it with: flowctl memory ls", "--version %d is no version; they begin with 1", version)
		}
		w.Expect = &version
	}
	return w, nil
}

func (a *app) memorySet(ctx context.Context, w store.MemoryWrite, text string) error {
	if err := checkNamespace(w.Namespace); err != nil {
		return err
	}
	if err := tool.CheckMemoryKey(w.Key); err != nil {
		return usagef("", "%v", err)
	}
	v, err := memoryJSON(w, text)
	if err != nil {
		return err
	}
	if v == nil {
		return usagef("take a key out with: flowctl memory rm "+shellQuote(w.Namespace)+" "+shellQuote(w.Key), "null cannot be remembered")
	}
	k, err := a.openMemory(ctx, a.open)
	if err != nil {
		return err
	}
	defer k.close()
	if w.Value, err = k.memoryValue(v); err != nil {
		return usagef("", "%v", err)
	}
	w.Namespace, w.Key = k.secrets.Text(w.Namespace), k.secrets.Text(w.Key)
	if err := k.db.Memorize(ctx, []store.MemoryWrite{w}); err != nil {
		return err
	}
	e, err := k.db.Remembered(ctx, w.Namespace, w.Key)
	if err != nil {
		return err
	}
	return k.told(e, fmt.Sprintf("has version %d", e.Version))
}

// memoryJSON reads the value of set. A bare word is most likely text whose quotes the shell has eaten.
func memoryJSON(w store.MemoryWrite, text string) (machine.Value, error) {
	if !utf8.ValidString(text) {
		return nil, usagef("give UTF-8 text", "the value is not UTF-8 text")
	}
	v, err := machine.DecodeValue([]byte(text))
	if err == nil {
		return v, nil
	}
	trimmed := strings.TrimSpace(text)
	meant := json.Valid([]byte(text)) || trimmed != "" && strings.ContainsAny(trimmed[:1], `{["`)
	quoted, bad := machine.EncodeValue(text)
	if meant || bad != nil {
		return nil, usagef("", "the value cannot be taken: %v", err)
	}
	return nil, usagef("text stands in quotes: flowctl memory set "+shellQuote(w.Namespace)+" "+shellQuote(w.Key)+" "+shellQuote(string(quoted)),
		"%q is no JSON", text)
}

func (a *app) memoryRm(ctx context.Context, w store.MemoryWrite) error {
	k, err := a.openMemory(ctx, a.openExisting)
	if err != nil {
		return err
	}
	defer k.close()
	e, err := k.entry(ctx, w.Namespace, w.Key)
	if err != nil {
		return err
	}
	if err := k.db.Memorize(ctx, []store.MemoryWrite{w}); err != nil {
		return err
	}
	return k.told(e, "is forgotten")
}

func (a *app) memoryExportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "export [NAMESPACE]",
		Short: "Print entries as JSON, to be imported elsewhere",
		Long: `Print the entries of a namespace, or all of them, as one JSON array of {namespace, key, value, version, updated_at}.
flowctl memory import reads it again.`,
		Example:           "  flowctl memory export > memory.json\n  flowctl memory export customer/ann | flowctl memory import - --db other.db",
		Args:              args(0, 1, ""),
		ValidArgsFunction: a.completeMemory,
		RunE: func(cmd *cobra.Command, args []string) error {
			var f store.MemoryFilter
			if len(args) == 1 {
				if err := checkNamespace(args[0]); err != nil {
					return err
				}
				f.Namespace = args[0]
			}
			return a.memoryExport(cmd.Context(), f)
		},
	}
}

func (a *app) memoryExport(ctx context.Context, f store.MemoryFilter) error {
	_, docs, err := a.memories(ctx, f)
	if err != nil {
		return err
	}
	a.printJSON(docs)
	return nil
}

func (a *app) memoryImportCommand() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "import FILE|-",
		Short: "Store entries that were exported, all or nothing",
		Long: `Store the entries of a JSON array as flowctl memory export prints it, from a file or (-) from standard input: all of them,
or none. What their keys hold already is replaced, and their versions go on from there; the versions in the file do not
count.

--check-versions stores them only while every key still has the version in the file (0: there is no such key). Otherwise
nothing is changed, the exit code is 8 and the message says which version the first other one has.`,
		Example: "  flowctl memory import memory.json\n  flowctl memory import memory.json --check-versions",
		Args:    args(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.memoryImport(cmd.Context(), args[0], check)
		},
	}
	cmd.Flags().BoolVar(&check, "check-versions", false, "only while all keys have the versions in the file")
	return cmd
}

// importedDocument is what import tells programs. It only grows.
type importedDocument struct {
	Imported int `json:"imported"`
}

func (a *app) memoryImport(ctx context.Context, file string, check bool) error {
	entries, err := a.readEntries(file)
	if err != nil {
		return err
	}
	writes := make([]store.MemoryWrite, len(entries))
	for i, e := range entries {
		writes[i] = store.MemoryWrite{Namespace: e.namespace, Key: e.key}
		if !check {
			continue
		}
		if e.version == nil {
			return usagef("give it a version, 0 for a key that must be new, or leave --check-versions out",
				"entry %d of %s has no version to check", i+1, file)
		}
		writes[i].Expect = e.version
	}
	k, err := a.openMemory(ctx, a.open)
	if err != nil {
		return err
	}
	defer k.close()
	for i, e := range entries {
		w := &writes[i]
		w.Namespace, w.Key = k.secrets.Text(w.Namespace), k.secrets.Text(w.Key)
		if w.Value, err = k.memoryValue(e.value); err != nil {
			return usagef("", "entry %d of %s (%s %s): %v", i+1, file, e.namespace, e.key, err)
		}
	}
	if err := k.db.Memorize(ctx, writes); err != nil {
		return err
	}
	if a.json() {
		a.printJSON(importedDocument{Imported: len(writes)})
		return nil
	}
	a.outln(plural(len(writes), "key") + " imported")
	return nil
}

// importEntry is one entry of a file to be imported.
type importEntry struct {
	namespace, key string
	value          machine.Value
	version        *int64 // nil: the file gives none
}

// readEntries reads and checks the entries of a file. All that is wrong with them is said at once.
func (a *app) readEntries(file string) ([]importEntry, error) {
	const hint = "what is wanted is a list of {namespace, key, value}, as memory export prints it"
	data, err := a.readAll(file)
	if err != nil {
		return nil, usagef(hint, "%s cannot be read: %v", file, reason(err))
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	if !utf8.Valid(data) {
		return nil, usagef("save the file as UTF-8", "%s is not UTF-8 text", file)
	}
	v, err := machine.DecodeValue(data)
	if err != nil {
		return nil, usagef(hint, "%s: %v", file, err)
	}
	list, ok := v.([]machine.Value)
	if !ok {
		return nil, usagef(hint, "%s is of JSON type %s, not a list of entries", file, machine.KindOf(v))
	}
	var wrong []string
	seen := map[[2]string]int{}
	entries := make([]importEntry, len(list))
	for i, item := range list {
		var faults []string
		entries[i], faults = readEntry(item)
		id := [2]string{entries[i].namespace, entries[i].key}
		if first, twice := seen[id]; twice && len(faults) == 0 {
			faults = append(faults, fmt.Sprintf("it has the namespace and key of entry %d", first))
		} else if !twice {
			seen[id] = i + 1
		}
		for _, fault := range faults {
			wrong = append(wrong, fmt.Sprintf("entry %d: %s", i+1, fault))
		}
	}
	if len(wrong) > 0 {
		return nil, usagef("nothing was imported; "+hint, "%s cannot be imported:\n  %s", file, strings.Join(wrong, "\n  "))
	}
	return entries, nil
}

// readAll reads a file, or for - what comes on standard input.
func (a *app) readAll(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(a.Stdin)
	}
	return os.ReadFile(a.path(file))
}

// entryKeys are the keys of an entry in a file. updated_at is not read: it is the time of the import.
var entryKeys = []string{"namespace", "key", "value", "version", "updated_at"}

// readEntry reads one entry of a file and says what is wrong with it.
func readEntry(item machine.Value) (importEntry, []string) {
	var e importEntry
	object, ok := item.(machine.Values)
	if !ok {
		return e, []string{"it is of JSON type " + machine.KindOf(item) + ", not an object"}
	}
	var faults []string
	for _, name := range machine.SortedNames(object) {
		if !slices.Contains(entryKeys, name) {
			faults = append(faults, fmt.Sprintf("there is no %q here; %s", name, suggest(name, entryKeys, "the keys are "+strings.Join(entryKeys, ", "))))
		}
	}
	e.namespace, _ = object["namespace"].(string)
	e.key, _ = object["key"].(string)
	if err := checkNamespace(e.namespace); err != nil {
		faults = append(faults, err.Error())
	}
	if err := tool.CheckMemoryKey(e.key); err != nil {
		faults = append(faults, err.Error())
	}
	e.value = object["value"]
	if _, err := tool.EncodeMemory(e.value); err != nil {
		faults = append(faults, err.Error())
	}
	switch v := object["version"].(type) {
	case nil:
	case int64:
		if e.version = &v; v < 0 {
			faults = append(faults, fmt.Sprintf("version %d is no version; they begin with 1", v))
		}
	default:
		faults = append(faults, "version is no whole number")
	}
	return e, faults
}

// conflictText says which version a key has that a write expected another of, and what to do about it.
func conflictText(c *store.MemoryConflict) (message, hint string) {
	if c.Version == 0 {
		return fmt.Sprintf("nothing was changed: %s in %s is not there", c.Key, c.Namespace), "list what there is with: flowctl memory ls"
	}
	return fmt.Sprintf("nothing was changed: %s in %s has version %d", c.Key, c.Namespace, c.Version),
		"look at it with: flowctl memory get " + shellQuote(c.Namespace) + " " + shellQuote(c.Key)
}
