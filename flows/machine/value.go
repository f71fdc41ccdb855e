package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Value is a JSON value: nil, bool, string, int64, float64, []Value or Values. Whole numbers are always int64 and exact; a
// float64 always has a fraction (see Normalize).
type Value = any

// Values is a JSON object, and the form in which variables, inputs and arguments travel.
type Values = map[string]Value

// DecodeValue reads exactly one JSON value. Integers become int64 with every digit kept; a number that fits neither int64
// nor a finite float64 is an error that advises to use a string.
func DecodeValue(data []byte) (Value, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var raw any
	if err := dec.Decode(&raw); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("expected a JSON value, found nothing")
		}
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("expected one JSON value, found more behind it")
	}
	return Normalize(raw)
}

// EncodeValue writes v as compact JSON with sorted keys and without HTML escapes. It is canonical: equal values have
// equal bytes.
func EncodeValue(v Value) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// Normalize turns what JSON and YAML decoders, databases and Go callers produce into a Value. Structs and other Go types
// go through their JSON form. Text that is not UTF-8 has its bad bytes replaced by U+FFFD.
func Normalize(v any) (Value, error) {
	switch x := v.(type) {
	case nil, bool, int64:
		return x, nil
	case string:
		return cleanText(x), nil
	case int:
		return int64(x), nil
	case int32:
		return int64(x), nil
	case json.Number:
		return parseNumber(x.String())
	case float64:
		return normalizeFloat(x)
	case uint64:
		if x > math.MaxInt64 {
			return nil, numberError(strconv.FormatUint(x, 10))
		}
		return int64(x), nil
	case []any:
		return normalizeList(x)
	case map[string]any:
		return normalizeObject(x)
	case json.RawMessage:
		return DecodeValue(x)
	}
	return normalizeOther(v)
}

func normalizeOther(v any) (Value, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%T cannot be stored as JSON: %w", v, err)
	}
	return DecodeValue(data)
}

func normalizeList(list []any) (Value, error) {
	out := make([]Value, len(list))
	for i, item := range list {
		n, err := Normalize(item)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		out[i] = n
	}
	return out, nil
}

func normalizeObject(object map[string]any) (Value, error) {
	out := make(Values, len(object))
	for _, name := range SortedNames(object) {
		n, err := Normalize(object[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[cleanText(name)] = n
	}
	return out, nil
}

func cleanText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func parseNumber(digits string) (Value, error) {
	if i, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return i, nil
	}
	if !strings.ContainsAny(digits, ".eE") {
		return nil, numberError(digits)
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return nil, numberError(digits)
	}
	return normalizeFloat(f)
}

// normalizeFloat gives the integer for a float that is one: 3.0 and 3 are the same number in JSON, and only one of the
// two may exist here, or a value would change its type on its way through the store. Beyond the integers every float is
// whole, so none of them fits.
func normalizeFloat(f float64) (Value, error) {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0), f >= 1<<63, f < -1<<63:
		return nil, numberError(strconv.FormatFloat(f, 'g', -1, 64))
	case f == math.Trunc(f):
		return int64(f), nil
	}
	return f, nil
}

func numberError(digits string) error {
	if len(digits) > 40 {
		digits = digits[:40] + "…"
	}
	return fmt.Errorf("the number %s is too large to stay exact (whole numbers go from %d to %d); use a string",
		digits, int64(math.MinInt64), int64(math.MaxInt64))
}

// FormatValue gives v as it stands in text: strings as they are, null as nothing, numbers in plain decimal, lists and
// objects as compact JSON.
func FormatValue(v Value) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case bool:
		return strconv.FormatBool(x)
	case int64:
		return strconv.FormatInt(x, 10)
	case int:
		return strconv.Itoa(x)
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	data, err := EncodeValue(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

// KindOf names the JSON type of v as JSON Schema does: null, boolean, integer, number, string, array or object.
func KindOf(v Value) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case int64, int:
		return "integer"
	case float64:
		return "number"
	case string:
		return "string"
	case []Value:
		return "array"
	case Values:
		return "object"
	}
	return "unknown"
}

// EqualValues says whether two values are the same JSON.
func EqualValues(a, b Value) bool { return reflect.DeepEqual(a, b) }

// CloneValue gives a deep copy.
func CloneValue(v Value) Value {
	switch x := v.(type) {
	case []Value:
		out := make([]Value, len(x))
		for i := range x {
			out[i] = CloneValue(x[i])
		}
		return out
	case Values:
		return CloneValues(x)
	}
	return v
}

// CloneValues gives a deep copy; nil stays nil.
func CloneValues(vs Values) Values {
	if vs == nil {
		return nil
	}
	out := make(Values, len(vs))
	for name, v := range vs {
		out[name] = CloneValue(v)
	}
	return out
}

// SortedNames gives the keys of m in order.
func SortedNames[T any](m map[string]T) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
