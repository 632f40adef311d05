import path from 'node:path'
import type { z } from 'zod'
import type { CapabilityDescriptor } from '../../../domain/card/card.js'
import { CARD_MAX_CAPABILITIES } from '../../../domain/card/schema.js'
import { messageOf } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import type { CompileSchema } from '../../../kit/sign.js'
import { nearest, shown } from '../../../kit/text.js'
import type { AgentDefinition, AgentFault } from '../../../ports/agent-runtime.js'
import {
  AGENT_FORMAT,
  type AgentFields,
  type AgentFormat,
  type CapabilityFields,
  fileReason,
  TOP_LEVEL_KEYS
} from './agent-file-schema.js'
import { agentIdOf, hasIdForm, idFault } from './agent-identity.js'
import { type FrontMatter, type PathStep, type PlacedFault, readFrontMatter } from './front-matter.js'
import type { NeededFile, RuntimeSpec, WrittenRuntime } from './runtime-type.js'

const RUNTIME: readonly PathStep[] = ['a2a', 'runtime']
const NO_MAPPING = 'the front matter must be lines of the form "key: value"'
/** Largest agent file, in bytes. */
export const MAX_AGENT_FILE_BYTES = 262_144

/** The published protocol strings that every hosted agent speaks. */
export const AGENT_PROTOCOLS: readonly string[] = ['a2a/1.0']

/** A file that an agent file names, whatever else is wrong with it. */
export interface NamedFile extends NeededFile {
  /** Line (1-based) of the runtime. */
  readonly line: number
}

/** An agent file that can be used. */
export interface AgentFile {
  readonly ok: true
  readonly definition: AgentDefinition
  readonly runtime: RuntimeSpec
  readonly files: readonly NamedFile[]
  /** Keys above `a2a` that have no meaning here. */
  readonly ignored: readonly string[]
  /** The text after the front matter. */
  readonly instructions: string
  /** Lines (1-based) that later faults of the whole file point at. */
  readonly lines: { readonly name: number; readonly runtime: number; readonly sandbox: number }
}

/** An agent file that cannot be used, with everything that is wrong with it. */
export interface FaultyAgentFile {
  readonly ok: false
  readonly ignored: readonly string[]
  readonly faults: readonly AgentFault[]
  readonly files: readonly NamedFile[]
}

/** Dependencies of {@link parseAgentFile}. */
export interface AgentFileContext {
  /** Absolute path of the file, for messages and as the base of relative paths. */
  readonly file: string
  readonly compileSchema: CompileSchema
  /** Default: the format with every runtime. */
  readonly format?: AgentFormat
}

/**
 * Reads the text of an agent file (Markdown with YAML front matter; see docs). Never throws: all faults are
 * returned at once, with lines. Bounds: 256 KiB, see {@link readFrontMatter} for the front matter.
 */
export function parseAgentFile(text: string, context: AgentFileContext): AgentFile | FaultyAgentFile {
  if (Buffer.byteLength(text) > MAX_AGENT_FILE_BYTES) return faulty(context, [tooLong()])
  const matter = readFrontMatter(text)
  if (!matter.ok) return faulty(context, matter.faults)
  const ignored = ignoredKeys(matter.data)
  if (matter.data !== null && !isRecord(matter.data)) return faulty(context, [{ line: 2, reason: NO_MAPPING }])
  const { compileSchema, file, format = AGENT_FORMAT } = context
  const checked = format.schema.safeParse(matter.data ?? {}, { error: fileReason })
  const misshapen = checked.success ? [] : checked.error.issues.flatMap((issue) => faultsOf(issue, matter, format))
  const [base, written, line] = [path.dirname(file), writtenRuntime(matter.data), matter.lineOf(RUNTIME)]
  const type = format.runtime(written['type'])
  const files = (type?.files?.(written, base) ?? []).map((one) => ({ ...one, line }))
  const ofRuntime = (type?.faults?.(written) ?? []).map(({ at, reason }) => ({
    line: matter.lineOf([...RUNTIME, ...at]),
    reason
  }))
  const id = writtenId(matter.data) ?? agentIdOf(valueAt(matter.data, ['name']), file)
  const rest = [
    ...capabilityFaults(matter, compileSchema),
    ...ofRuntime,
    ...(checked.success && id === null ? [noId(matter)] : [])
  ]
  if (!checked.success || type === undefined || id === null || rest.length > 0)
    return { ...faulty(context, [...misshapen, ...rest], ignored), files }
  return {
    ok: true,
    definition: definitionOf(checked.data, id, file),
    runtime: type.spec(checked.data.a2a.runtime, base),
    files,
    ignored,
    instructions: matter.body,
    lines: { name: matter.lineOf(['name']), runtime: line, sandbox: matter.lineOf(['a2a', 'sandbox']) }
  }
}

/** The fault of a file above {@link MAX_AGENT_FILE_BYTES}. */
export function tooLong(): PlacedFault {
  return { line: null, reason: `the file is larger than ${MAX_AGENT_FILE_BYTES / 1024} KiB` }
}

type AgentMatter = Extract<FrontMatter, { ok: true }>

function faulty(
  context: AgentFileContext,
  faults: readonly PlacedFault[],
  ignored: readonly string[] = []
): FaultyAgentFile {
  const placed = faults.map(({ line, reason }) => ({ file: context.file, line, reason: shown(reason, 512) }))
  return { ok: false, ignored, faults: inOrder(placed), files: [] }
}

/** The key `a2a.id`; null without a valid one. */
function writtenId(data: unknown): string | null {
  const id = valueAt(data, ['a2a', 'id'])
  return typeof id === 'string' && hasIdForm(id) && idFault(id) === null ? id : null
}

/** The fault of a file that gives its agent no id. */
function noId(matter: AgentMatter): PlacedFault {
  const reason =
    'the name of the file gives no id: write a name of a-z, 0-9, dot, underscore and dash (name: my-agent), or rename the file'
  return { line: matter.lineOf(['name']), reason }
}

/** Sorts faults by line. */
export function inOrder(faults: readonly AgentFault[]): readonly AgentFault[] {
  return [...faults].sort((a, b) => (a.line ?? 0) - (b.line ?? 0))
}

/** The runtime as written; empty when it is no mapping. */
function writtenRuntime(data: unknown): WrittenRuntime {
  const written = valueAt(data, RUNTIME)
  return isRecord(written) ? written : {}
}

function ignoredKeys(data: unknown): readonly string[] {
  if (!isRecord(data)) return []
  return Object.keys(data)
    .filter((key) => !TOP_LEVEL_KEYS.includes(key))
    .map((key) => shown(key, 64))
}

function faultsOf(issue: z.core.$ZodIssue, matter: AgentMatter, format: AgentFormat): readonly PlacedFault[] {
  const at = issue.path as readonly PathStep[]
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      line: matter.lineOf([...at, key]),
      reason: `${pathText([...at, key])} is unknown${suggestion(key, format.knownKeys(at, writtenRuntime(matter.data)['type']))}`
    }))
  }
  if (at.length === 0 || isMissing(matter.data, at))
    return [{ line: matter.lineOf(at), reason: `${pathText(at)} is missing${missingHint(at)}` }]
  return [{ line: matter.lineOf(at), reason: `${pathText(at)} ${issue.message}` }]
}

function suggestion(key: string, known: readonly string[]): string {
  const [best] = nearest(key, known)
  return best === undefined ? ` (known: ${known.join(', ')})` : `; did you mean ${best}?`
}

function missingHint(at: readonly PathStep[]): string {
  return at[0] === 'a2a' && at.length === 1
    ? ': it says what the agent can do (capabilities) and how to run it (runtime); "a2a-node agents import" adds one to a sub-agent file'
    : ''
}

function isMissing(data: unknown, at: readonly PathStep[]): boolean {
  return valueAt(data, at) === undefined
}

function valueAt(data: unknown, at: readonly PathStep[]): unknown {
  let value = data
  for (const step of at) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Record<PathStep, unknown>)[step]
  }
  return value
}

function pathText(at: readonly PathStep[]): string {
  return at.map((step, i) => (typeof step === 'number' ? `[${step}]` : `${i === 0 ? '' : '.'}${step}`)).join('')
}

/** Faults of capabilities beyond their schema. Entries of another shape are checked as far as possible. */
function capabilityFaults(matter: AgentMatter, compileSchema: CompileSchema): readonly PlacedFault[] {
  const faults: PlacedFault[] = []
  const firstLine = new Map<unknown, number>()
  let defaults = 0
  const listed = valueAt(matter.data, ['a2a', 'capabilities'])
  const capabilities: readonly unknown[] = Array.isArray(listed) ? listed.slice(0, CARD_MAX_CAPABILITIES) : []
  capabilities.forEach((one, i) => {
    if (!isRecord(one)) return
    const at: PathStep[] = ['a2a', 'capabilities', i]
    const { id } = one
    const earlier = firstLine.get(id)
    if (typeof id === 'string' && earlier !== undefined)
      faults.push({
        line: matter.lineOf([...at, 'id']),
        reason: `the capability ${id} is listed twice, first on line ${earlier}`
      })
    else firstLine.set(id, matter.lineOf([...at, 'id']))
    if (one['default'] === true && ++defaults > 1)
      faults.push({ line: matter.lineOf([...at, 'default']), reason: 'only one capability may be the default' })
    for (const side of ['input', 'output'] as const) {
      const reason = isRecord(one[side]) ? schemaFault(one[side], compileSchema) : null
      if (reason !== null)
        faults.push({ line: matter.lineOf([...at, side]), reason: `${pathText([...at, side])}: ${reason}` })
    }
  })
  return faults
}

function schemaFault(schema: unknown, compileSchema: CompileSchema): string | null {
  try {
    compileSchema(schema)
    return null
  } catch (error) {
    return messageOf(error)
  }
}

function definitionOf(fields: AgentFields, id: string, file: string): AgentDefinition {
  const { version, tier, sandbox, provider, capabilities, prompts, runtime, limits } = fields.a2a
  return {
    id,
    name: fields.name ?? id,
    version,
    description: fields.description,
    tier,
    sandboxId: sandbox,
    protocols: AGENT_PROTOCOLS,
    ...(provider === undefined ? {} : { provider }),
    capabilities: capabilities.map(capabilityOf),
    ...(prompts.length === 0 ? {} : { prompts }),
    limits: { timeoutMs: limits.timeout, concurrency: limits.concurrency, maxOutputBytes: limits.maxOutput },
    runtime: runtime.type,
    source: file
  }
}

function capabilityOf(fields: CapabilityFields): CapabilityDescriptor {
  const { input, output, name, ...rest } = fields
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined)) as GivenAgentFile<
    typeof rest
  >
  return { ...given, name: name ?? fields.id, inputSchema: input, outputSchema: output }
}

/** The members of T without those that are undefined. */
type GivenAgentFile<T> = { [K in keyof T]: Exclude<T[K], undefined> }
