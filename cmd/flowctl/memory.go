package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"flowctl/engine/secret"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/flows/spell"
	"flowctl/store"
)

func (a *app) memoryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Look into the long-term memory, and change it",
		Long: `Look into the long-term memory, which outlives runs, and change it. An entry has a namespace (whose memory it is, as the
key memory of a flow says), a key, a JSON value, and a version that every change raises. A key that was taken out goes on
from the version that it had when it is set anew, so no version ever stands for two values.

In a namespace of several parts, such as customer/{{ customer }}, a slash inside of an inserted value is written %2F, and
a percent sign %25.`,
		Example: `  flowctl memory ls
  flowctl memory get customer/ann address
  flowctl memory set customer/ann address '{"city": "Bonn"}'
  flowctl memory search customer/ann 'refund Bonn'`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.Args = a.unknownCommand(cmd)
	cmd.AddCommand(a.memoryLsCommand(), a.memoryGetCommand(), a.memorySetCommand(), a.memoryRmCommand(), a.memorySearchCommand(),
		a.memoryExportCommand(), a.memoryImportCommand())
	return cmd
}

func (a *app) memoryLsCommand() *cobra.Command {
	var keys string
	cmd := &cobra.Command{
		Use:   "ls [NAMESPACE]",
		Short: "List entries by namespace and key",
		Long: `List the entries of a namespace, or all of them, by namespace and key.

-o json prints an array of {namespace, key, value, version, updated_at}.`,
		Example: `  flowctl memory ls
  flowctl memory ls customer/ann --keys 'address.*'`,
		Args:              args(0, 1, ""),
		ValidArgsFunction: a.completeMemory,
		RunE: func(cmd *cobra.Command, args []string) error {
			f := store.MemoryFilter{Keys: keys}
			if len(args) == 1 {
				if err := checkNamespace(args[0]); err != nil {
					return err
				}
				f.Namespace = args[0]
			}
			return a.memoryList(cmd.Context(), f)
		},
	}
	cmd.Flags().StringVar(&keys, "keys", "", "only keys that fit this `PATTERN`, in which * stands for any text")
	return cmd
}

func (a *app) memorySearchCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "search NAMESPACE QUERY",
		Short: "Search a namespace, the best hits first",
		Long: `Search the keys and values of a namespace for words. What holds more of them comes first. Case does not matter; of Chinese,
Japanese and Thai every two neighbours are a word.

-o json prints an array of {namespace, key, value, version, updated_at}.`,
		Example: `  flowctl memory search customer/ann refund
  flowctl memory search customer/ann 'refund of the blue shoes' --limit 3`,
		Args:              args(2, 2, "NAMESPACE or QUERY"),
		ValidArgsFunction: a.completeMemory,
		RunE: func(cmd *cobra.Command, args []string) error {
			f := store.MemoryFilter{Namespace: args[0], Query: args[1], Limit: limit}
			if err := checkNamespace(args[0]); err != nil {
				return err
			}
			switch {
			case limit < 0:
				return usagef("write --limit 0 for all", "--limit %d is no number of entries", limit)
			case len(store.NewRecall(f).Words()) == 0:
				return usagef("write what to look for, such as: flowctl memory search "+shellQuote(args[0])+" refund", "%q holds no word", args[1])
			}
			return a.memoryList(cmd.Context(), f)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "list at most `N` entries (0: all)")
	return cmd
}

func (a *app) memoryGetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "get NAMESPACE KEY",
		Short: "Show one value",
		Long: `Show the value of a key: text as it is, everything else as JSON.

-o json prints {namespace, key, value, version, updated_at}.`,
		Example:           "  flowctl memory get customer/ann address\n  flowctl memory get customer/ann address -o json",
		Args:              args(2, 2, "NAMESPACE or KEY"),
		ValidArgsFunction: a.completeMemory,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.memoryGet(cmd.Context(), args[0], args[1])
		},
	}
}

// keeping is an open database with what is needed to read and write its memory.
type keeping struct {
	*place
	secrets *secret.Redactor
}

// openMemory opens the long-term memory by openExisting, or for a command that may make the database by open.
func (a *app) openMemory(ctx context.Context, open func(context.Context) (*place, error)) (*keeping, error) {
	env, err := a.environment(a.path("."))
	if err != nil {
		return nil, err
	}
	secrets, err := secretsOf(nil, env)
	if err != nil {
		return nil, err
	}
	p, err := open(ctx)
	if err != nil {
		return nil, err
	}
	return &keeping{place: p, secrets: secrets}, nil
}

// memoryDocument is the shape of an entry for programs. It only grows.
type memoryDocument struct {
	Namespace string          `json:"namespace"`
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value"`
	Version   int64           `json:"version"`
	Updated   string          `json:"updated_at"`
}

// document gives an entry as it is shown: without secrets, its letters unescaped.
func (k *keeping) document(e store.MemoryEntry) (memoryDocument, machine.Value, error) {
	v, err := machine.DecodeValue(e.Value)
	if err != nil {
		return memoryDocument{}, nil, fmt.Errorf("the value of %s in %s is damaged: %w", e.Key, e.Namespace, err)
	}
	v = k.secrets.Value(v)
	data, err := machine.EncodeValue(v)
	if err != nil {
		return memoryDocument{}, nil, err
	}
	return memoryDocument{Namespace: k.secrets.Text(e.Namespace), Key: k.secrets.Text(e.Key), Value: data, Version: e.Version,
		Updated: stamp(e.Updated)}, v, nil
}

// memories reads the entries that a filter chooses, and how each is shown.
func (a *app) memories(ctx context.Context, f store.MemoryFilter) ([]store.MemoryEntry, []memoryDocument, error) {
	k, err := a.openMemory(ctx, a.openExisting)
	if err != nil {
		return nil, nil, err
	}
	defer k.close()
	entries, err := k.db.Memories(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	docs := make([]memoryDocument, len(entries))
	for i, e := range entries {
		if docs[i], _, err = k.document(e); err != nil {
			return nil, nil, err
		}
	}
	return entries, docs, nil
}

// memoryColumns is how many columns of a value a list shows; get has all of it.
const memoryColumns = 60

// memoryList prints the entries that a filter chooses.
func (a *app) memoryList(ctx context.Context, f store.MemoryFilter) error {
	entries, docs, err := a.memories(ctx, f)
	if err != nil {
		return err
	}
	if a.json() {
		a.printJSON(docs)
		return nil
	}
	if len(docs) == 0 {
		a.errln("nothing is remembered that fits")
		return nil
	}
	rows := make([][]string, len(docs))
	for i, d := range docs {
		rows[i] = []string{oneLine(d.Namespace), oneLine(d.Key), fmt.Sprint(d.Version), ago(a.Now(), entries[i].Updated),
			shorten(oneLine(string(d.Value)), memoryColumns)}
	}
	a.table([]string{"NAMESPACE", "KEY", "VERSION", "UPDATED", "VALUE"}, rows)
	return nil
}

func (a *app) memoryGet(ctx context.Context, namespace, key string) error {
	k, err := a.openMemory(ctx, a.openExisting)
	if err != nil {
		return err
	}
	defer k.close()
	e, err := k.entry(ctx, namespace, key)
	if err != nil {
		return err
	}
	doc, v, err := k.document(e)
	if err != nil {
		return err
	}
	if a.json() {
		a.printJSON(doc)
		return nil
	}
	a.outln(a.clean(readable(v), a.Terminal.Out))
	return nil
}

// entry reads one entry. One that is not there is an error that names what is near.
func (k *keeping) entry(ctx context.Context, namespace, key string) (store.MemoryEntry, error) {
	e, err := k.db.Remembered(ctx, namespace, key)
	if !errors.Is(err, store.ErrNotFound) {
		return e, err
	}
	all, err := k.db.Memories(ctx, store.MemoryFilter{Bare: true})
	if err != nil {
		return e, err
	}
	var keys, namespaces []string
	for _, other := range all {
		if namespaces = append(namespaces, other.Namespace); other.Namespace == namespace {
			keys = append(keys, other.Key)
		}
	}
	if len(keys) == 0 {
		return e, usagef(suggest(namespace, slices.Compact(namespaces), "list what there is with: flowctl memory ls"),
			"nothing is remembered in namespace %q", namespace)
	}
	return e, usagef(nearKeys(namespace, key, keys), "namespace %s has no key %q", namespace, key)
}

// nearest is how many keys a hint names.
const nearest = 5

// nearKeys gives the hint that names the nearest of a namespace's keys: those with the same beginning, else one that looks
// like it.
func nearKeys(namespace, key string, keys []string) string {
	var like []string
	if one := spell.Nearest(key, keys); one != "" {
		like = append(like, one)
	}
	for _, other := range keys {
		if len(like) < nearest && !slices.Contains(like, other) && key != "" && (strings.HasPrefix(other, key) || strings.HasPrefix(key, other)) {
			like = append(like, other)
		}
	}
	if len(like) == 0 {
		return "list its keys with: flowctl memory ls " + shellQuote(namespace)
	}
	return "did you mean " + strings.Join(like, ", ") + "?"
}

// checkNamespace refuses what no flow's namespace can be.
func checkNamespace(namespace string) error {
	const hint = "name whose memory it is, such as shop or customer/ann"
	switch {
	case strings.TrimSpace(namespace) == "":
		return usagef(hint, "the namespace is empty")
	case !utf8.ValidString(namespace):
		return usagef(hint, "the namespace is not UTF-8 text")
	case strings.ContainsFunc(namespace, unicode.IsControl):
		return usagef(hint, "the namespace %q holds a control character, such as a line break", namespace)
	}
	return nil
}

// completeMemory completes a namespace, and then a key in it.
func (a *app) completeMemory(cmd *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	keys := len(args) == 1 && slices.Contains([]string{"get", "set", "rm"}, cmd.Name())
	if len(args) > 0 && !keys || a.begin(cmd) != nil {
		return nil, nothing
	}
	k, err := a.openMemory(cmd.Context(), a.openExisting)
	if err != nil {
		return nil, nothing
	}
	defer k.close()
	f := store.MemoryFilter{Bare: true}
	if keys {
		f.Namespace = args[0]
	}
	entries, err := k.db.Memories(cmd.Context(), f)
	if err != nil {
		return nil, nothing
	}
	var found []cobra.Completion
	for _, e := range entries {
		word := e.Namespace
		if keys {
			word = e.Key
		}
		if strings.HasPrefix(word, start) {
			found = append(found, word)
		}
	}
	return slices.Compact(found), nothing // namespaces come in order
}

// told says in text what was done to an entry, or prints the entry for programs.
func (k *keeping) told(e store.MemoryEntry, text string) error {
	doc, _, err := k.document(e)
	if err != nil {
		return err
	}
	if k.app.json() {
		k.app.printJSON(doc)
		return nil
	}
	k.app.outln(k.app.clean(doc.Namespace+" "+doc.Key+" "+text, k.app.Terminal.Out))
	return nil
}

// memoryValue makes a value fit to be stored, without secrets.
func (k *keeping) memoryValue(v machine.Value) ([]byte, error) {
	return tool.EncodeMemory(k.secrets.Value(v))
}
