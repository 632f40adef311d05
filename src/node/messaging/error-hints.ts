import type { ErrorBody } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { isRecord } from '../../kit/json.js'
import { shellWord, shown } from '../../kit/text.js'
import { isRefusal } from '../../domain/reliable/repeat.js'

/** An error whose next steps name the agent that it is about, and its message the node that refused. `agent`: `id@node name`. */
export function stepsFor(error: ErrorBody, agent: string): ErrorBody {
  // The first: an input that is typed again may say so too.
  const next = error.next.map((step) => step.replace('<agent>', () => shellWord(agent)))
  const { refusedBy, ...data } = isRecord(error.data) ? error.data : {}
  if (refusedBy === undefined) return { ...error, next }
  return refusal({ ...error, next, data }, agent.slice(agent.lastIndexOf('@') + 1))
}

/** Notes of a refusal that came as an answer whose it is; {@link stepsFor} tells it. Every other error stays as it is. */
export function refusedThere(error: ErrorBody, peer: NodeId): ErrorBody {
  const data = isRecord(error.data) ? error.data : {}
  // What a neighbour on the way refused says so itself.
  return !isRefusal(error.code) || data['via'] !== undefined ? error : { ...error, data: { ...data, refusedBy: peer } }
}

/** The same refusal with the name of the node that refused, and by which rule. */
export function refusal(error: ErrorBody, node: string): ErrorBody {
  const { rule, ...data } = isRecord(error.data) ? error.data : {}
  const by = error.code === 'POLICY_DENIED' || error.code === 'APPROVAL_TIMEOUT'
  const why = by && typeof rule === 'string' ? ` (${shown(rule)})` : ''
  const message = `refused by ${node}: ${error.message}${why}`
  return { ...error, message, data: { ...(rule === undefined ? {} : { rule }), ...data, node } }
}
