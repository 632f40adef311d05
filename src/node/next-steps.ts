import type { ErrorBody } from '../kit/errors.js'
import { shellWord } from '../kit/text.js'

/** An error whose next steps name the agent that it is about. `agent`: `id@node name`. */
export function stepsFor(error: ErrorBody, agent: string): ErrorBody {
  return { ...error, next: error.next.map((step) => step.replaceAll('<agent>', () => shellWord(agent))) }
}
