import type { ErrorBody } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { isRecord } from '../../kit/json.js'
import { shellWord, shown } from '../../kit/text.js'
import { isRefusal } from '../../domain/reliable/repeat.js'

/**
 * Completes an error: next steps with the agent's name, and a message with the refusing node. `agent`: `id@node name`.
 */
export function stepsFor(error: ErrorBody, agent: string): ErrorBody {
  // Replace the first place only: repeated user input may contain the same text.
  const next = error.next.map((step) => step.replace('<agent>', () => shellWord(agent)))
  const { refusedBy, ...data } = isRecord(error.data) ? error.data : {}
  if (refusedBy === undefined) return { ...error, next }
  return refusal({ ...error, next, data }, agent.slice(agent.lastIndexOf('@') + 1))
}

/** Adds the refusing node to a refusal that came as an answer, for {@link stepsFor}. Other errors stay unchanged. */
export function refusedThere(error: ErrorBody, peer: NodeId): ErrorBody {
  const data = isRecord(error.data) ? error.data : {}
  // The refusal of a relay names the relay itself.
  return !isRefusal(error.code) || data['via'] !== undefined ? error : { ...error, data: { ...data, refusedBy: peer } }
}

/** The same refusal with the name of the refusing node and the rule. */
export function refusal(error: ErrorBody, node: string): ErrorBody {
  const { rule, ...data } = isRecord(error.data) ? error.data : {}
  const by = error.code === 'POLICY_DENIED' || error.code === 'APPROVAL_TIMEOUT'
  const why = by && typeof rule === 'string' ? ` (${shown(rule)})` : ''
  const message = `refused by ${node}: ${error.message}${why}`
  return { ...error, message, data: { ...(rule === undefined ? {} : { rule }), ...data, node } }
}
