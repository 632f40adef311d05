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
  type AgentFields,
  AgentFrontMatter,
  type CapabilityFields,
  knownKeysAt,
  fileReason,
  type RuntimeFields,
  TOP_LEVEL_KEYS
} from './agent-file-schema.js'
import { hasPlaceholder } from '../process/command-arguments.js'
import { type FrontMatter, type PathStep, type PlacedFault, readFrontMatter } from './front-matter.js'

const NO_MAPPING = 'the front matter must be lines of the form "key: value"'
/** Largest agent file, in bytes. */
export const MAX_AGENT_FILE_BYTES = 262_144

/** The published protocol strings that every hosted agent speaks. */
export const AGENT_PROTOCOLS: readonly string[] = ['a2a/1.0']

/** How a file's agent is run: one process a task. */
export interface CommandSpec {
  readonly type: 'command'
  /** Program and arguments; arguments may hold `{input.path}`. */
  readonly command: readonly string[]
  /** Variables beside PATH, HOME, LANG, TMPDIR and A2A_NODE_HOME. */
  readonly env: Readonly<Record<string, string>>
  /** Absolute working directory. Default: the directory of the agent file. */
  readonly cwd: string
}

/** How a file's agent is run: an ES module in a child that stays up. */
export interface ModuleSpec {
  readonly type: 'module'
  /** Absolute path of the module. */
  readonly path: string
  /** Variables beside PATH, HOME, LANG, TMPDIR and A2A_NODE_HOME. */
  readonly env: Readonly<Record<string, string>>
}

/** How a file's agent is run: a language model that is asked turn by turn; the text of the file is its system prompt. */
export interface LlmSpec {
  readonly type: 'llm'
  /** Name of a provider of the config. */
  readonly provider: string
  /** null: the model of the provider. */
  readonly model: string | null
  /** Globs of capabilities of the mesh that it may call. */
  readonly tools: readonly string[]
  /** Questions to the model in one run. */
  readonly maxTurns: number
  /** Tokens of one answer of the model. */
  readonly maxTokens: number
  /** Tokens of one run, and of all runs of the agent in one day (UTC), questions and answers together. */
  readonly budget: { readonly run: number; readonly day: number }
}

/** The `runtime` of an agent file. */
export type RuntimeSpec = CommandSpec | ModuleSpec | LlmSpec

/** The module that an agent file names, as far as it names one, whatever else is wrong with it. */
export interface NamedModule {
  /** Absolute. */
  readonly path: string
  /** Line (1-based) of the runtime. */
  readonly line: number
}

/** An agent file that can be used. */
export interface AgentFile {
  readonly ok: true
  readonly definition: AgentDefinition
  readonly runtime: RuntimeSpec
  readonly module: NamedModule | null
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
  readonly module: NamedModule | null
}

/** What {@link parseAgentFile} needs beside the text. */
export interface AgentFileContext {
  /** Absolute path of the file, for messages and as the base of relative paths. */
  readonly file: string
  readonly compileSchema: CompileSchema
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
  const checked = AgentFrontMatter.safeParse(matter.data ?? {}, { error: fileReason })
  const misshapen = checked.success ? [] : checked.error.issues.flatMap((issue) => faultsOf(issue, matter))
  const rest = [...capabilityFaults(matter, context.compileSchema), ...runtimeFaults(matter)]
  const module = moduleIn(matter, path.dirname(context.file))
  if (!checked.success || rest.length > 0) return { ...faulty(context, [...misshapen, ...rest], ignored), module }
  return {
    ok: true,
    definition: definitionOf(checked.data, context.file),
    runtime: runtimeOf(checked.data.a2a.runtime, path.dirname(context.file)),
    module,
    ignored,
    instructions: matter.body,
    lines: { name: matter.lineOf(['name']), runtime: matter.lineOf(['a2a', 'runtime']), sandbox: matter.lineOf(['a2a', 'sandbox']) }
  }
}

/** The fault of a file above {@link MAX_AGENT_FILE_BYTES}. */
export function tooLong(): PlacedFault {
  return { line: null, reason: `the file is larger than ${MAX_AGENT_FILE_BYTES / 1024} KiB` }
}

type AgentMatter = Extract<FrontMatter, { ok: true }>

function faulty(context: AgentFileContext, faults: readonly PlacedFault[], ignored: readonly string[] = []): FaultyAgentFile {
  const placed = faults.map(({ line, reason }) => ({ file: context.file, line, reason: shown(reason, 512) }))
  return { ok: false, ignored, faults: inOrder(placed), module: null }
}

/** Faults as they are told: by line. */
export function inOrder(faults: readonly AgentFault[]): readonly AgentFault[] {
  return [...faults].sort((a, b) => (a.line ?? 0) - (b.line ?? 0))
}

function moduleIn(matter: AgentMatter, base: string): NamedModule | null {
  const runtime = valueAt(matter.data, ['a2a', 'runtime'])
  if (!isRecord(runtime) || runtime['type'] !== 'module') return null
  const { path: given } = runtime
  return typeof given === 'string' && given !== '' ? { path: path.resolve(base, given), line: matter.lineOf(['a2a', 'runtime']) } : null
}

function ignoredKeys(data: unknown): readonly string[] {
  if (!isRecord(data)) return []
  return Object.keys(data)
    .filter((key) => !TOP_LEVEL_KEYS.includes(key))
    .map((key) => shown(key, 64))
}

function faultsOf(issue: z.core.$ZodIssue, matter: AgentMatter): readonly PlacedFault[] {
  const at = issue.path as readonly PathStep[]
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      line: matter.lineOf([...at, key]),
      reason: `${pathText([...at, key])} is unknown${suggestion(key, at, matter.data)}`
    }))
  }
  if (at.length === 0 || isMissing(matter.data, at))
    return [{ line: matter.lineOf(at), reason: `${pathText(at)} is missing${missingHint(at)}` }]
  return [{ line: matter.lineOf(at), reason: `${pathText(at)} ${issue.message}` }]
}

function suggestion(key: string, at: readonly PathStep[], data: unknown): string {
  const known = knownKeysAt(at, valueAt(data, [...at, 'type']))
  const [best] = nearest(key, known)
  return best === undefined ? ` (known: ${known.join(', ')})` : `; did you mean ${best}?`
}

function missingHint(at: readonly PathStep[]): string {
  return at[0] === 'a2a' && at.length === 1 ? ': it says what the agent can do (capabilities) and how to run it (runtime)' : ''
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

/** What the shape of the capabilities does not say; those that have another shape are looked at as far as they go. */
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
      faults.push({ line: matter.lineOf([...at, 'id']), reason: `the capability ${id} is listed twice, first on line ${earlier}` })
    else firstLine.set(id, matter.lineOf([...at, 'id']))
    if (one['default'] === true && ++defaults > 1)
      faults.push({ line: matter.lineOf([...at, 'default']), reason: 'only one capability may be the default' })
    for (const side of ['input', 'output'] as const) {
      const reason = isRecord(one[side]) ? schemaFault(one[side], compileSchema) : null
      if (reason !== null) faults.push({ line: matter.lineOf([...at, side]), reason: `${pathText([...at, side])}: ${reason}` })
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

function runtimeFaults(matter: AgentMatter): readonly PlacedFault[] {
  const command = valueAt(matter.data, ['a2a', 'runtime', 'command'])
  if (!Array.isArray(command) || command.length === 0 || valueAt(matter.data, ['a2a', 'runtime', 'type']) !== 'command') return []
  const line = (i: number): number => matter.lineOf(['a2a', 'runtime', 'command', i])
  const faults: PlacedFault[] = []
  const words = command.map((word: unknown) => (typeof word === 'string' ? word : null))
  const [program] = words
  if (program === '') faults.push({ line: line(0), reason: 'a2a.runtime.command[0]: the program is empty' })
  // What a peer sends must never choose the program.
  if (typeof program === 'string' && hasPlaceholder(program))
    faults.push({ line: line(0), reason: 'a2a.runtime.command[0]: the program may not be taken from the input' })
  words.forEach((word, i) => {
    if (word?.includes('\0') === true) faults.push({ line: line(i), reason: `a2a.runtime.command[${i}] holds a NUL character` })
  })
  return faults
}

function definitionOf(fields: AgentFields, file: string): AgentDefinition {
  const { version, tier, sandbox, capabilities, prompts, runtime, limits } = fields.a2a
  return {
    id: fields.name,
    name: fields.name,
    version,
    description: fields.description,
    tier,
    sandboxId: sandbox,
    protocols: AGENT_PROTOCOLS,
    capabilities: capabilities.map(capabilityOf),
    ...(prompts.length === 0 ? {} : { prompts }),
    limits: { timeoutMs: limits.timeout, concurrency: limits.concurrency, maxOutputBytes: limits.maxOutput },
    runtime: runtime.type,
    source: file
  }
}

function capabilityOf(fields: CapabilityFields): CapabilityDescriptor {
  const { input, output, name, ...rest } = fields
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined)) as GivenAgentFile<typeof rest>
  return { ...given, name: name ?? fields.id, inputSchema: input, outputSchema: output }
}

/** The members of T without those that are undefined. */
type GivenAgentFile<T> = { [K in keyof T]: Exclude<T[K], undefined> }

function runtimeOf(fields: RuntimeFields, base: string): RuntimeSpec {
  if (fields.type === 'llm') return llmOf(fields)
  if (fields.type === 'module') return { type: 'module', path: path.resolve(base, fields.path), env: fields.env }
  return { type: 'command', command: fields.command, env: fields.env, cwd: path.resolve(base, fields.cwd ?? '.') }
}

function llmOf({ model, ...rest }: Extract<RuntimeFields, { type: 'llm' }>): LlmSpec {
  // Models of some providers have slashes of their own.
  const [provider = '', ...name] = model.split('/')
  return { ...rest, provider, model: name.length === 0 ? null : name.join('/') }
}
