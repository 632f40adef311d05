import { type ErrorCode, NodeError } from '../../kit/errors.js'
import { shellWord } from '../../kit/text.js'
import { MAX_CARDS, MAX_CARDS_BYTES } from '../../domain/membership/fold/card.js'
import type { LogProblem, Problem } from '../../ports/node-api.js'
import type { AgentHost } from './agent-host.js'
import type { LocalCards } from '../cards/local-cards.js'

/** Agents that a problem names. */
const NAMED = 5

/** Errors about what the log of the mesh may hold although this node does not find it. */
const FROM_LOG: ReadonlySet<ErrorCode> = new Set([
  'PEER_NOT_FOUND',
  'AGENT_NOT_FOUND',
  'CAPABILITY_NOT_FOUND',
  'NO_CAPABLE_AGENT',
  'DOCUMENT_NOT_FOUND',
  'INVITE_NOT_FOUND'
])

/** Adds to an error about what is not found that the log of the mesh is not whole here, and what to do. Other errors stay as they are. */
export function withLogProblem(failure: NodeError, problems: () => readonly LogProblem[]): NodeError {
  const [problem] = FROM_LOG.has(failure.code) ? problems() : []
  if (problem === undefined) return failure
  const { code, message, data } = failure
  return new NodeError(code, `${message}: ${problem.message}`, { data, next: [problem.next], retryable: true, cause: failure })
}

/** Why agents that a person may expect on this node are not in the mesh: files that cannot be used, agents of another sandbox, and those that are too many. */
export function agentProblems({ agents, localCards }: { readonly agents: AgentHost; readonly localCards: LocalCards }): Problem[] {
  const faults = agents.faults().map((one) => ({
    code: 'AGENT_FILE_INVALID',
    message: `${one.file}${one.line === null ? '' : `:${one.line}`}: ${one.reason}`,
    next: `a2a-node agents check ${shellWord(one.file)}`
  }))
  const misplaced = localCards.misplaced().map(({ id, source, reason }) => ({
    code: 'AGENT_FILE_INVALID',
    message: `${source}: a2a.sandbox: agent ${id} is not offered: ${reason}`,
    next: `a2a-node agents check ${shellWord(source)}`
  }))
  const unwell = agents.definitions().flatMap(({ id, runtime }) => {
    const health = agents.health(id)
    // Those of elsewhere have problems of their own.
    if (health?.state !== 'unhealthy' || runtime === 'a2a' || runtime === 'mcp') return []
    return {
      code: 'AGENT_UNHEALTHY',
      message: `agent ${id} cannot work: ${health.reason ?? 'it does not say why'}`,
      next: `a2a-node agents show ${id}`
    }
  })
  return [...faults, ...unwell, ...misplaced, ...surplusProblem(localCards)]
}

/** Why the mesh takes no more agents of this node, and what to do: there are too many, or their cards are too large together. */
export function surplusReason(localCards: LocalCards): string {
  if (localCards.own().length >= MAX_CARDS) return `it takes ${MAX_CARDS - 1} agents of one node: remove the files of some`
  return `it takes ${MAX_CARDS_BYTES / 1024 ** 2} MiB of cards of one node: shorten descriptions and schemas, or remove the files of some`
}

function surplusProblem(localCards: LocalCards): Problem[] {
  const ids = localCards.surplus()
  if (ids.length === 0) return []
  const more = ids.length > NAMED ? ` and ${ids.length - NAMED} more` : ''
  const message = `not in the mesh: ${ids.slice(0, NAMED).join(', ')}${more}; ${surplusReason(localCards)}`
  return [{ code: 'TOO_MANY_AGENTS', message, next: 'a2a-node agents --local' }]
}
