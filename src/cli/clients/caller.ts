import type { CallerTerms } from '../../adapters/control/caller-terms.js'
import { CALLER_GLOB, CALLER_GLOBS_MAX, CALLER_NAME, tierText } from '../../adapters/control/terms.js'
import { NodeError } from '../../kit/errors.js'
import { type Options, sandboxOption, textOption, tierOption } from '../options.js'

const DEFAULT_TIER = 1

/** The rights in the options of a command line; `name` is the default name. @throws NodeError USAGE */
export function callerTerms(options: Options, name: string): CallerTerms {
  const as = textOption(options, 'as') ?? name
  if (!CALLER_NAME.test(as)) throw wrong('--as', '1 to 64 letters, digits, dots, underscores and hyphens', as)
  return {
    name: as,
    tier: tierOption(options, 'tier') ?? DEFAULT_TIER,
    sandboxId: sandboxOption(options, 'sandbox') ?? null,
    agents: agentsOption(options)
  }
}

/** The options of `mcp serve` that give these rights. */
export function callerWords({ name, tier, sandboxId, agents }: CallerTerms): readonly string[] {
  const sandbox = sandboxId === null ? [] : ['--sandbox', sandboxId]
  return [
    '--as',
    name,
    '--tier',
    tierText(tier),
    ...sandbox,
    ...(agents === null ? [] : ['--agents', agents.join(',')])
  ]
}

/** These rights for people. */
export function rightsText({ tier, sandboxId, agents }: CallerTerms): string {
  const sandbox = sandboxId === null ? '' : ` in sandbox ${sandboxId}`
  return `tier ${tierText(tier)} at most${sandbox}, scopes read and send, ${agents === null ? 'all agents' : `agents ${agents.join(', ')}`}`
}

function agentsOption(options: Options): string[] | null {
  const text = textOption(options, 'agents')
  if (text === undefined) return null
  const globs = text.split(',')
  if (globs.length <= CALLER_GLOBS_MAX && globs.every((one) => CALLER_GLOB.test(one))) return globs
  throw wrong('--agents', `1 to ${CALLER_GLOBS_MAX} ids of agents such as text,file*`, text)
}

function wrong(option: string, allowed: string, text: string): NodeError {
  return new NodeError('USAGE', `${option} takes ${allowed}, not ${JSON.stringify(text)}`)
}
