import { createRequire } from 'node:module'
import type { Ajv, AnySchema, ErrorObject, Options, ValidateFunction } from 'ajv'
import { BoundedMap } from '../../../kit/bounded.js'
import { messageOf, NodeError } from '../../../kit/errors.js'
import { canonicalJson, isRecord, jsonFault } from '../../../kit/json.js'
import type { Check, CompileSchema, SchemaFault } from '../../../kit/sign.js'
import { exactPattern, type MakePattern } from './patterns.js'
import { TimeLimit } from '../process/time-limit.js'
import { isQuickSchema, TimedCheck } from './timed-check.js'

/** Largest JSON Schema, in bytes of JSON. */
const MAX_SCHEMA_BYTES = 65_536
/** Compiled schemas that are kept; the one unused longest goes first. */
const MAX_KEPT = 512

type Dialect = 'draft-07' | '2020-12'

/**
 * Makes a {@link CompileSchema} on Ajv, which is loaded at the first call. draft-07 when a schema names no `$schema`,
 * else the named one (draft-06 and -07, 2019-09, 2020-12). Formats are not checked, unknown keywords are ignored.
 * Bounds: 64 KiB, nesting 32; `$ref` reaches only into the same schema. Equal schemas share one check. A check ends
 * after a second at the latest; a value that cannot be checked by then does not fit.
 */
export function createSchemaCompiler(): CompileSchema {
  const engines = new Map<Dialect, Engine>()
  const kept = new BoundedMap<string, Check>(MAX_KEPT)
  const limit = new TimeLimit()
  return (schema) => {
    const text = boundedText(schema)
    const known = kept.get(text)
    if (known !== undefined) {
      kept.setNewest(text, known)
      return known
    }
    const dialect = dialectOf(schema)
    let engine = engines.get(dialect)
    if (engine === undefined) engines.set(dialect, (engine = createEngine(dialect)))
    const check = compile(engine, JSON.parse(text) as AnySchema, limit)
    kept.set(text, check)
    return check
  }
}

function boundedText(schema: unknown): string {
  if (typeof schema !== 'boolean' && !isRecord(schema)) throw invalid('it must be an object or a boolean')
  const fault = jsonFault(schema)
  if (fault !== null) throw invalid(fault)
  let text: string
  try {
    text = canonicalJson(schema)
  } catch (error) {
    throw invalid(messageOf(error))
  }
  if (Buffer.byteLength(text) > MAX_SCHEMA_BYTES) throw invalid(`it is larger than ${MAX_SCHEMA_BYTES / 1024} KiB`)
  return text
}

function dialectOf(schema: unknown): Dialect {
  const named = isRecord(schema) ? schema['$schema'] : undefined
  if (named === undefined) return 'draft-07'
  const match =
    typeof named === 'string'
      ? /^https?:\/\/json-schema\.org\/(draft-0[67]|draft\/2019-09|draft\/2020-12)\/schema#?$/.exec(named)
      : null
  if (match === null) throw invalid('its $schema is none of draft-06, draft-07, 2019-09, 2020-12')
  return match[1]?.startsWith('draft-0') === true ? 'draft-07' : '2020-12'
}

/** Ajv of one dialect. `judge` validates schemas; each schema is compiled in its own instance. */
interface Engine {
  readonly judge: Ajv
  fresh(pattern: MakePattern): Ajv
}

function createEngine(dialect: Dialect): Engine {
  const require = createRequire(import.meta.url)
  const options: Options = {
    strict: false,
    logger: false,
    validateFormats: false,
    // Inherited properties must not satisfy `required: [toString]`.
    ownProperties: true,
    code: { regExp: withCode(exactPattern) }
  }
  const Engine =
    dialect === 'draft-07'
      ? (require('ajv') as typeof import('ajv')).Ajv
      : (require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')).Ajv2020
  const fresh: Engine['fresh'] = (pattern) =>
    withLinearUniqueItems(
      new Engine({ ...options, meta: false, validateSchema: false, code: { regExp: withCode(pattern) } })
    )
  return { judge: new Engine(options), fresh }
}

/** Ajv also wants to know how a program would make a pattern; nothing here makes one. */
function withCode(pattern: MakePattern): MakePattern & { readonly code: string } {
  return Object.assign((text: string, flags: string) => pattern(text, flags), { code: 'pattern' })
}

/** Ajv itself compares each item with each. */
function withLinearUniqueItems(engine: Ajv): Ajv {
  engine.removeKeyword('uniqueItems')
  engine.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    errors: false,
    error: { message: 'must NOT have duplicate items' },
    validate: (isOn: boolean, items: readonly unknown[]) =>
      !isOn || new Set(items.map((one) => canonicalJson(one))).size === items.length
  })
  return engine
}

function compile({ judge, fresh }: Engine, schema: AnySchema, limit: TimeLimit): Check {
  // Its dialect chose the engine; left in, an alias of that dialect would be looked up by name.
  if (typeof schema === 'object') delete schema['$schema']
  try {
    if (judge.validateSchema(schema) !== true) throw new Error(schemaFaults(judge.errors ?? []))
    // The names ($id) of one schema must neither clash with those of another nor be seen by it.
    const validate = fresh(exactPattern).compile(schema)
    // An asynchronous validator answers with a promise, which reads as "valid".
    if ('$async' in validate) throw new Error('$async is not supported')
    const exact = plainCheck(validate)
    if (isQuickSchema(schema)) return (value) => checked(exact, value)
    const makeLinear = (pattern: MakePattern): Check => plainCheck(fresh(pattern).compile(schema))
    const timed = new TimedCheck({ exact, makeLinear, limit })
    return (value) => timed.check(value)
  } catch (error) {
    throw invalid(schemaReason(error))
  }
}

/** Why Ajv cannot compile a schema that has the right form. */
function schemaReason(error: unknown): string {
  const { missingRef } = error as { readonly missingRef?: unknown }
  if (typeof missingRef === 'string') return `its $ref ${JSON.stringify(missingRef)} points to no part of it`
  const pattern = /^Invalid regular expression: \/(.*)\/\w*: /s.exec(messageOf(error))?.[1]
  return pattern === undefined ? messageOf(error) : `${JSON.stringify(pattern)} is no regular expression`
}

/** @throws errors of reading the value */
function plainCheck(validate: ValidateFunction): Check {
  return (value) => (validate(value) ? [] : faultsOf(validate.errors ?? []))
}

function faultsOf(errors: readonly ErrorObject[]): SchemaFault[] {
  return withoutBranches(errors).slice(0, 20).map(faultOf)
}

/** Faults of a schema itself. */
function schemaFaults(errors: readonly ErrorObject[]): string {
  // A wrong `type` has a fault for each form that it may have; the first names the types.
  const faults = faultsOf(errors)
  return faults
    .filter(({ path }, at) => faults.findIndex((one) => one.path === path) === at)
    .map(({ path, message }) => `schema${path} ${message}`)
    .join(', ')
}

function checked(check: Check, value: unknown): readonly SchemaFault[] {
  try {
    return check(value)
  } catch (error) {
    return [{ path: '', message: `could not be checked: ${messageOf(error)}` }]
  }
}

/**
 * Ajv first reports why each branch of an `anyOf` or `oneOf` did not fit, then that none did: makes one fault of them.
 */
function withoutBranches(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const kept: ErrorObject[] = []
  for (const error of errors) {
    const isChoice = error.keyword === 'anyOf' || (error.keyword === 'oneOf' && error.params['passingSchemas'] === null)
    const from = isChoice ? kept.findIndex((one) => one.schemaPath.startsWith(`${error.schemaPath}/`)) : -1
    const branches = from === -1 ? [] : kept.splice(from)
    const messages = branches.map((one) =>
      `${one.instancePath.slice(error.instancePath.length)} ${faultOf(one).message}`.trim()
    )
    kept.push(branches.length === 0 ? error : { ...error, message: [...new Set(messages)].join(' or ').slice(0, 500) })
  }
  return kept
}

function faultOf({ keyword, params, instancePath: path, message = keyword }: ErrorObject): SchemaFault {
  if (keyword === 'required') return { path, message: `must have ${JSON.stringify(params['missingProperty'])}` }
  if (keyword === 'additionalProperties')
    return { path, message: `must not have ${JSON.stringify(params['additionalProperty'])}` }
  if (keyword === 'enum')
    return { path, message: `must be one of ${JSON.stringify(params['allowedValues']).slice(0, 200)}` }
  return { path, message }
}

function invalid(reason: string): NodeError {
  return new NodeError('INVALID_CARD', `not a usable JSON Schema: ${reason}`)
}
