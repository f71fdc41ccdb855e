package schema

// keyword says what may stand behind a keyword of a schema in a flow file.
type keyword struct {
	shape shape
	types []string // JSON types that the keyword says something about; nil: all
}

// shape is what the value of a keyword must be.
type shape int

const (
	shapeAny shape = iota
	shapeText
	shapeCount // a whole number from 0
	shapeNumber
	shapePositive // a number above 0
	shapeFlag     // true or false
	shapeList     // a list of anything, not empty
	shapeNames    // a list of names
	shapeSchema
	shapeSchemas   // a list of schemas, not empty
	shapeSchemaMap // schemas by name
	shapeType
	shapeRegexp
	shapeFormat
	shapeRef
)

var (
	numeric = []string{"integer", "number"}
	textual = []string{"string"}
	lists   = []string{"array"}
	objects = []string{"object"}
)

// keywords are those that a schema in a flow file may use.
var keywords = map[string]keyword{
	"type": {shape: shapeType}, "enum": {shape: shapeList}, "const": {},
	"title": {shape: shapeText}, "description": {shape: shapeText}, "default": {}, "examples": {shape: shapeList},

	"pattern": {shapeRegexp, textual}, "format": {shapeFormat, textual},
	"minLength": {shapeCount, textual}, "maxLength": {shapeCount, textual},

	"minimum": {shapeNumber, numeric}, "maximum": {shapeNumber, numeric},
	"exclusiveMinimum": {shapeNumber, numeric}, "exclusiveMaximum": {shapeNumber, numeric},
	"multipleOf": {shapePositive, numeric},

	"items": {shapeSchema, lists}, "prefixItems": {shapeSchemas, lists},
	"minItems": {shapeCount, lists}, "maxItems": {shapeCount, lists}, "uniqueItems": {shapeFlag, lists},

	"properties": {shapeSchemaMap, objects}, "required": {shapeNames, objects},
	"additionalProperties": {shapeSchema, objects},
	"minProperties":        {shapeCount, objects}, "maxProperties": {shapeCount, objects},

	"oneOf": {shape: shapeSchemas}, "anyOf": {shape: shapeSchemas}, "allOf": {shape: shapeSchemas},
	"not": {shape: shapeSchema}, "if": {shape: shapeSchema}, "then": {shape: shapeSchema}, "else": {shape: shapeSchema},

	"$ref": {shape: shapeRef}, "$defs": {shape: shapeSchemaMap},
}

// aliases are words that other notations use for ours.
var aliases = map[string]string{
	"desc": "description", "doc": "description", "values": "enum", "choices": "enum", "options": "enum",
	"one_of": "enum", "min": "minimum", "max": "maximum", "regex": "pattern", "regexp": "pattern", "example": "examples",
	"definitions": "$defs", "defs": "$defs", "fields": "properties", "props": "properties", "item": "items",
	"nullable": "type: [string, null]", "optional": "default", "value": "const", "ref": "$ref",
}

// typeAliases are names of types that other notations use for JSON's.
var typeAliases = map[string]string{
	"str": "string", "text": "string", "int": "integer", "long": "integer", "float": "number", "double": "number",
	"decimal": "number", "bool": "boolean", "list": "array", "dict": "object", "map": "object", "json": "object",
	"none": "null", "nil": "null", "date": "string", "datetime": "string",
}

// typeNames are the types of JSON Schema, sorted.
var typeNames = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// bounds are pairs of keywords of which the first must not be above the second.
var bounds = [][2]string{
	{"minimum", "maximum"}, {"exclusiveMinimum", "exclusiveMaximum"}, {"minimum", "exclusiveMaximum"},
	{"exclusiveMinimum", "maximum"}, {"minLength", "maxLength"}, {"minItems", "maxItems"},
	{"minProperties", "maxProperties"},
}
