import path from 'node:path'
import type { TierText } from '../../../domain/routing/tier.js'
import { isRecord } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import { agentIdOf, hasIdForm, idFault } from './agent-identity.js'
import { type PlacedFault, readFrontMatter, splitFrontMatter } from './front-matter.js'

/** Runtimes that a sub-agent file can get. */
export const SUB_AGENT_RUNTIMES = ['llm', 'command'] as const

/** The runtime of sub-agent files, which name none themselves. */
export interface SubAgentRuntime {
  readonly runtime: (typeof SUB_AGENT_RUNTIMES)[number]
  /** Of `llm`: a provider of the config, or provider/model. null: the only provider. */
  readonly model: string | null
  /** null: that of the node. */
  readonly tier: TierText | null
  /** Of `command`: program and arguments. null: the client that the file is for. */
  readonly command: readonly string[] | null
}

/**
 * The result of a file: the text of an agent file; itself, since it is one; nothing, for a reason of its author; or
 * faults. `unused`: its keys without a meaning here.
 */
export type SubAgentText =
  | { readonly kind: 'agent'; readonly text: string; readonly id: string; readonly unused: readonly string[] }
  | { readonly kind: 'own' }
  | { readonly kind: 'skipped'; readonly reason: string }
  | { readonly kind: 'faulty'; readonly faults: readonly PlacedFault[] }

/** Longest description of a capability. */
const CAPABILITY_DESCRIPTION_MAX = 4096
/** The prompt beside the task, which travels on the standard input: no input of a peer becomes an argument. */
const PROMPT = 'Do the task that the JSON on standard input describes.'

/** The first line of front matter. */
const OPENING = /^\uFEFF?---[ \t]*\r?\n/
const NO_ID = 'neither the name nor the name of the file gives an id: rename the file (a-z, 0-9, dot, underscore, dash)'
const NO_INSTRUCTIONS = 'it has no instructions after the front matter, which a language model needs'

/** Markdown files with front matter that are no sub-agents. */
const OTHER_FILES = /^(?:SKILL|README|CHANGELOG|CONTRIBUTING)\.md$|\.(?:prompt|instructions)\.md$/i

/** May a file of this name be a sub-agent? */
export function isSubAgentFile(name: string): boolean {
  return /\.md$/i.test(name) && !name.startsWith('.') && !OTHER_FILES.test(name)
}

/** A program that reads sub-agent files. */
interface ClientProgram {
  /** Directory of a project or of the user in which it has its files. */
  readonly dir: string
  /** Keys that no other client has. */
  readonly keys: readonly string[]
  /** The name of a file is the id of its agent, and `name` is for people. */
  readonly hasFileIds: boolean
  command(agent: string): readonly string[]
}

const CLAUDE: ClientProgram = {
  dir: '.claude',
  hasFileIds: false,
  keys: [],
  command: (agent) => ['claude', '-p', `--agent=${agent}`, PROMPT]
}
const COPILOT: ClientProgram = {
  dir: '.github',
  hasFileIds: true,
  keys: ['target', 'mcp-servers', 'handoffs', 'infer', 'argument-hint', 'user-invocable', 'disable-model-invocation'],
  command: (agent) => ['copilot', '-s', `--agent=${agent}`, '-p', PROMPT]
}
const GEMINI: ClientProgram = {
  dir: '.gemini',
  hasFileIds: false,
  keys: ['kind', 'max_turns', 'timeout_mins'],
  command: (agent) => ['gemini', '-p', `@${agent} ${PROMPT}`]
}
const OPENCODE: ClientProgram = {
  dir: '.opencode',
  hasFileIds: true,
  keys: ['mode', 'permission', 'steps', 'maxSteps', 'top_p'],
  command: (agent) => ['opencode', 'run', `--agent=${agent}`, PROMPT]
}
const CLIENTS: readonly ClientProgram[] = [CLAUDE, COPILOT, GEMINI, OPENCODE]

/**
 * Makes the text of an agent file of a sub-agent file (Claude Code, Copilot, Gemini CLI, OpenCode): adds an `a2a` block
 * with one capability, `<id>.run`. All lines of the front matter stay where they are. Never throws. `file`: its
 * absolute path. Skipped: a text without front matter, an agent that is disabled or elsewhere. Faults: no front matter
 * that can be read, no id, no instructions for `llm`.
 */
export function agentTextOf(text: string, file: string, given: SubAgentRuntime): SubAgentText {
  const parts = splitFrontMatter(text)
  if (typeof parts === 'string' && !OPENING.test(text)) return { kind: 'skipped', reason: 'it has no front matter' }
  const matter = readFrontMatter(text)
  if (!matter.ok || typeof parts === 'string') return { kind: 'faulty', faults: matter.ok ? [] : matter.faults }
  const data = isRecord(matter.data) ? matter.data : {}
  if (data['a2a'] !== undefined) return { kind: 'own' }
  const reason = skipReason(data)
  if (reason !== null) return { kind: 'skipped', reason }
  const { name } = data
  const client = clientOf(data, file)
  const id = subAgentId(data, file, client)
  if (id === null) return { kind: 'faulty', faults: [{ line: matter.lineOf(['name']), reason: NO_ID }] }
  if (given.runtime === 'llm' && matter.body.trim() === '')
    return { kind: 'faulty', faults: [{ line: null, reason: NO_INSTRUCTIONS }] }
  const title = typeof name === 'string' ? name : id
  const description = typeof data['description'] === 'string' ? data['description'] : title
  const added = [
    ...(data['description'] === undefined ? [`description: ${JSON.stringify(description)}`] : []),
    ...blockLines({
      id,
      isNamed: agentIdOf(name, `${id}.md`) === id,
      description,
      given,
      ...(given.runtime === 'llm' ? {} : { command: commandOf(data, file, { given, client }) })
    })
  ]
  const yaml = parts.yaml.endsWith('\n') || parts.yaml === '' ? parts.yaml : `${parts.yaml}\n`
  const unused = Object.keys(data).flatMap((key) => (key === 'name' || key === 'description' ? [] : [shown(key, 64)]))
  return { kind: 'agent', id, unused, text: `---\n${yaml}${added.join('\n')}\n---\n${parts.body}` }
}

/** The id of a sub-agent: its own `id`, else the one that its client knows it by. null: none that an agent may have. */
function subAgentId(data: Readonly<Record<string, unknown>>, file: string, client: ClientProgram): string | null {
  const { id, name } = data
  if (typeof id === 'string' && hasIdForm(id)) return idFault(id) === null ? id : null
  return agentIdOf(client.hasFileIds ? null : name, file)
}

/** Why a file is nothing for a node by the will of its author; null when it is a sub-agent. */
function skipReason(data: Readonly<Record<string, unknown>>): string | null {
  if (data['kind'] === 'remote') return 'it is an agent elsewhere: name its card in a2a.agents of the config'
  return data['disable'] === true || data['disabled'] === true ? 'it is disabled in its front matter' : null
}

interface Block {
  readonly id: string
  /** Do the name and the file of the agent give the id already? */
  readonly isNamed: boolean
  readonly description: string
  readonly given: SubAgentRuntime
  readonly command?: { readonly words: readonly string[]; readonly cwd: string }
}

/** JSON is YAML: every text of the file is quoted. */
function blockLines({ id, isNamed, description, given: { tier, model }, command }: Block): readonly string[] {
  const capability = {
    id: `${id.replace(/^[^a-z0-9]+/, '') || 'agent'}.run`,
    description: shown(description, CAPABILITY_DESCRIPTION_MAX),
    input: { type: 'object' },
    sideEffect: command === undefined ? 'read' : 'exec'
  }
  const runtime =
    command === undefined ? { type: 'llm', model } : { type: 'command', command: command.words, cwd: command.cwd }
  return [
    'a2a:',
    ...(isNamed ? [] : [`  id: ${JSON.stringify(id)}`]),
    ...(tier === null ? [] : [`  tier: ${tier}`]),
    `  capabilities: [${JSON.stringify(capability)}]`,
    `  runtime: ${JSON.stringify(runtime)}`
  ]
}

function commandOf(
  data: Readonly<Record<string, unknown>>,
  file: string,
  { given: { command }, client }: { readonly given: SubAgentRuntime; readonly client: ClientProgram }
): NonNullable<Block['command']> {
  const { name } = data
  const ofFile = path.basename(file).replace(/(?:\.agent)?\.md$/i, '')
  const isNamed = typeof name === 'string' && !client.hasFileIds
  // Braces would be a place for the input.
  const agent = (isNamed ? name : ofFile).replaceAll(/[{}]/g, '')
  return { words: command ?? client.command(agent), cwd: projectOf(file, client) }
}

/** The client of a file: by its directory, else by its name and its keys. */
function clientOf(data: Readonly<Record<string, unknown>>, file: string): ClientProgram {
  const steps = file.split(path.sep)
  const byPlace = CLIENTS.find(({ dir }) => steps.includes(dir))
  if (byPlace !== undefined) return byPlace
  if (steps.includes('opencode')) return OPENCODE
  if (file.endsWith('.agent.md')) return COPILOT
  return CLIENTS.find(({ keys }) => keys.some((key) => data[key] !== undefined)) ?? CLAUDE
}

/** The directory that a client is started in to find the file: above its own; else the directory of the file. */
function projectOf(file: string, { dir }: ClientProgram): string {
  const steps = file.split(path.sep)
  const at = steps.lastIndexOf(dir)
  return at > 0 ? steps.slice(0, at).join(path.sep) || path.sep : path.dirname(file)
}
