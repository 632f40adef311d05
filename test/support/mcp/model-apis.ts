import { Ajv2020 } from 'ajv/dist/2020.js'
import { isRecord } from '../../../src/kit/json.js'

/** A tool as it is sent to a model. */
export interface SentTool {
  readonly name: string
  readonly inputSchema: Readonly<Record<string, unknown>>
}

type Schema = Readonly<Record<string, unknown>>

/** Place of a schema in a tool. */
interface Place {
  readonly isRoot: boolean
  readonly root: Schema
}

type Refusal = readonly [api: string, rule: string, isRefused: (schema: Schema, place: Place) => boolean]

/** Keywords that Gemini's declarations of functions have. */
const GEMINI = new Set(
  'type format title description enum items minItems maxItems minLength maxLength pattern minimum maximum anyOf properties additionalProperties required default $ref $defs x-mcp-header'.split(
    ' '
  )
)
/** What the APIs refuse in a schema. A refused schema fails the whole request, so that no tool of any server works. */
export const REFUSALS: readonly Refusal[] = [
  ['claude', 'a root that is no object', ({ type }, { isRoot }) => isRoot && type !== 'object'],
  [
    'claude, openai',
    'a combinator at the root',
    (schema, { isRoot }) =>
      isRoot && ['anyOf', 'oneOf', 'allOf', 'not', 'enum', '$ref'].some((key) => schema[key] !== undefined)
  ],
  [
    'claude',
    'a name of a property outside [A-Za-z0-9_.-]{1,64}',
    ({ properties }) => Object.keys(properties ?? {}).some((name) => !/^[A-Za-z0-9_.-]{1,64}$/.test(name))
  ],
  ['openai', 'a root without properties', ({ properties }, { isRoot }) => isRoot && !isRecord(properties)],
  ['openai, gemini', 'an array without items', ({ type, items }) => type === 'array' && !isRecord(items)],
  ['openai', 'a pattern with a look-around', ({ pattern }) => typeof pattern === 'string' && /\(\?(?!:)/.test(pattern)],
  [
    'openai, gemini',
    'a reference with other keywords beside it',
    (schema) => schema['$ref'] !== undefined && Object.keys(schema).length > 1
  ],
  [
    'openai',
    'a reference to another place than a definition at the root',
    ({ $ref }, { root }) =>
      $ref !== undefined && !Object.keys(root['$defs'] ?? {}).some((name) => $ref === `#/$defs/${name}`)
  ],
  [
    'codex, gemini',
    'a schema without a type',
    ({ type, anyOf, $ref }) => type === undefined && anyOf === undefined && $ref === undefined
  ],
  ['gemini', 'a list of types', ({ type }) => Array.isArray(type)],
  ['gemini', 'an unknown keyword', (schema) => Object.keys(schema).some((key) => !GEMINI.has(key))],
  [
    'gemini',
    'values of an enum that are no texts, or empty',
    ({ enum: values, type }) =>
      values !== undefined &&
      !(
        type === 'string' &&
        Array.isArray(values) &&
        values.length > 0 &&
        values.every((one) => typeof one === 'string' && one !== '')
      )
  ],
  [
    'gemini',
    'a required property that is not defined',
    ({ required, properties }) =>
      Array.isArray(required) && required.some((name) => !Object.hasOwn(properties ?? {}, String(name)))
  ]
]

const ajv = new Ajv2020({ strict: false })

/** The refusals of a tool, as `api: rule`, once each. */
export function refusalsOf({ name, inputSchema }: SentTool): readonly string[] {
  const found = new Set<string>()
  // With the 15 characters that Claude Code puts before a name.
  if (!/^[A-Za-z0-9_-]{1,49}$/.test(name)) found.add('all: its name')
  if (!ajv.validate('https://json-schema.org/draft/2020-12/schema', inputSchema))
    found.add('claude: no JSON Schema of draft 2020-12')
  visit(inputSchema, { isRoot: true, root: inputSchema }, found)
  return [...found]
}

function visit(schema: unknown, place: Place, found: Set<string>): void {
  if (!isRecord(schema)) return void found.add('codex, gemini: a schema without a type')
  for (const [api, rule, isRefused] of REFUSALS) if (isRefused(schema, place)) found.add(`${api}: ${rule}`)
  const below = { ...place, isRoot: false }
  const { properties, $defs, items, anyOf, oneOf, allOf, additionalProperties } = schema
  for (const named of [properties, $defs])
    if (isRecord(named)) for (const one of Object.values(named)) visit(one, below, found)
  for (const list of [anyOf, oneOf, allOf]) if (Array.isArray(list)) for (const one of list) visit(one, below, found)
  if (items !== undefined) visit(items, below, found)
  if (isRecord(additionalProperties)) visit(additionalProperties, below, found)
}
