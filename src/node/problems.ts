import { shellWord } from '../kit/text.js'
import { MAX_CARDS } from '../domain/membership/fold-card.js'
import type { Problem } from '../ports/node-api.js'
import type { AgentHost } from './agents.js'
import type { OwnCards } from './own-cards.js'

/** Agents that a problem names. */
const NAMED = 5

/** Why agents that a person may expect on this node are not in the mesh: files that cannot be used, and agents that are too many. */
export function agentProblems({ agents, ownCards }: { readonly agents: AgentHost; readonly ownCards: OwnCards }): Problem[] {
  const faults = agents.faults().map((one) => ({
    code: 'AGENT_FILE_INVALID',
    message: `${one.file}${one.line === null ? '' : `:${one.line}`}: ${one.reason}`,
    next: `a2a-node agents check ${shellWord(one.file)}`
  }))
  return [...faults, ...surplusProblem(ownCards.surplus())]
}

function surplusProblem(ids: readonly string[]): Problem[] {
  if (ids.length === 0) return []
  const more = ids.length > NAMED ? ` and ${ids.length - NAMED} more` : ''
  const message = `not in the mesh: ${ids.slice(0, NAMED).join(', ')}${more}; it takes ${MAX_CARDS - 1} agents of one node: remove the files of some`
  return [{ code: 'TOO_MANY_AGENTS', message, next: 'a2a-node agents --local' }]
}
