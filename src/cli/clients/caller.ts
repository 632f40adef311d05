import type { CallerTerms } from '../../adapters/control/caller-terms.js'
import { CALLER_GLOB, CALLER_GLOBS_MAX, CALLER_NAME, tierText, TOOL_GLOB } from '../../adapters/control/terms.js'
import { NodeError } from '../../kit/errors.js'
import { type Options, sandboxOption, textOption, tierOption } from '../options.js'

const DEFAULT_TIER = 1

/** The rights in the options of a command line; `name` is the default name. @throws NodeError USAGE */
export function callerTerms(options: Options, name: string): CallerTerms {
  const as = textOption(options, 'as') ?? name
  const tools = globsOption(options, TOOLS)
  if (!CALLER_NAME.test(as)) throw wrong('--as', '1 to 64 letters, digits, dots, underscores and hyphens', as)
  return {
    name: as,
    tier: tierOption(options, 'tier') ?? DEFAULT_TIER,
    sandboxId: sandboxOption(options, 'sandbox') ?? null,
    agents: globsOption(options, AGENTS),
    ...(tools === null ? {} : { tools })
  }
}

/** The options of `mcp serve` that give these rights. */
export function callerWords({ name, tier, sandboxId, agents, tools }: CallerTerms): readonly string[] {
  const sandbox = sandboxId === null ? [] : ['--sandbox', sandboxId]
  return [
    '--as',
    name,
    '--tier',
    tierText(tier),
    ...sandbox,
    ...(agents === null ? [] : ['--agents', agents.join(',')]),
    ...(tools === undefined ? [] : ['--tools', tools.join(',')])
  ]
}

/** These rights for people. */
export function rightsText({ tier, sandboxId, agents, tools }: CallerTerms): string {
  const sandbox = sandboxId === null ? '' : ` in sandbox ${sandboxId}`
  const listed = tools === undefined ? '' : `, tools ${tools.join(', ')}`
  return `tier ${tierText(tier)} at most${sandbox}, scopes read and send, ${agents === null ? 'all agents' : `agents ${agents.join(', ')}`}${listed}`
}

/** An option with a list of globs. */
interface GlobsOption {
  readonly name: string
  readonly form: RegExp
  readonly allowed: string
}

const AGENTS: GlobsOption = { name: 'agents', form: CALLER_GLOB, allowed: 'ids of agents such as text,file*' }
const TOOLS: GlobsOption = { name: 'tools', form: TOOL_GLOB, allowed: 'names of tools such as text.*,git@beta.*' }

function globsOption(options: Options, { name, form, allowed }: GlobsOption): string[] | null {
  const text = textOption(options, name)
  if (text === undefined) return null
  const globs = text.split(',')
  if (globs.length <= CALLER_GLOBS_MAX && globs.every((one) => form.test(one))) return globs
  throw wrong(`--${name}`, `1 to ${CALLER_GLOBS_MAX} ${allowed}`, text)
}

function wrong(option: string, allowed: string, text: string): NodeError {
  return new NodeError('USAGE', `${option} takes ${allowed}, not ${JSON.stringify(text)}`)
}
