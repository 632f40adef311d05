import { isRecord } from '../../../kit/json.js'
import { nearest, shown } from '../../../kit/text.js'
import type { CapabilityDescriptor } from '../../../domain/card/card.js'
import type { AgentOutcome, AgentTask } from '../../../ports/agent-runtime.js'
import { callRemote, type RemoteRun } from './remote-call.js'
import { connectRemote, fetchCard, type RemoteNet, type RemotePlace } from './remote-connect.js'
import { failedRemote, RemoteFault, remoteFaultOf } from './remote-fault.js'
import { remoteInput } from './remote-parts.js'

/** Id of the built-in agent that calls any A2A agent, for its own node only. */
export const CALLER_ID = 'a2a'
/** Time limit of its call, in milliseconds. */
export const CALLER_TIMEOUT_MS = 600_000
/** Most bytes of the output of the other agent. */
export const CALLER_MAX_BYTES = 10_485_760
/** Most skills that an error names. */
const NAMED = 20

/** Its only capability. */
export const CALLER_CAPABILITY: CapabilityDescriptor = {
  id: 'a2a.call',
  name: 'Call an A2A agent',
  description: 'Sends a message to the A2A agent of a card and follows its task. For its own node alone.',
  inputSchema: {
    type: 'object',
    required: ['card', 'input'],
    additionalProperties: false,
    properties: {
      card: {
        type: 'string',
        minLength: 1,
        maxLength: 2048,
        description: 'URL of the card of the agent, or its origin.'
      },
      skill: {
        type: 'string',
        minLength: 1,
        maxLength: 256,
        description: 'Which of its skills; without one the agent finds out.'
      },
      input: { description: 'A text, or JSON.' },
      justification: {
        type: 'string',
        minLength: 1,
        maxLength: 1024,
        description: 'Why a more powerful agent is asked.'
      }
    }
  },
  outputSchema: {},
  sideEffect: 'exec'
}

/** Calls the agent of a card once, without a secret, and stores nothing. Never rejects. */
export async function callOnce(
  net: RemoteNet,
  task: Pick<AgentTask, 'input' | 'requestId'>,
  run: RemoteRun
): Promise<AgentOutcome> {
  const input = isRecord(task.input) ? task.input : {}
  const card = typeof input['card'] === 'string' ? input['card'] : ''
  const agent = shown(card, 200)
  const skill = typeof input['skill'] === 'string' ? input['skill'] : null
  const place: RemotePlace = {
    card,
    secret: null,
    key: null,
    maxOutputBytes: CALLER_MAX_BYTES,
    timeoutMs: CALLER_TIMEOUT_MS
  }
  try {
    const found = await fetchCard(net, place, run.signal)
    const skills = found.skills.map(({ id }) => id)
    if (skill !== null && !skills.includes(skill))
      throw new RemoteFault('unsent', `it has no skill "${shown(skill)}"; ${hintOf(skill, skills)}`)
    const link = await connectRemote(net, place, found)
    const { justification } = input
    const why = typeof justification === 'string' ? { justification } : {}
    const message = { ...remoteInput(input['input']), ...why, skill, messageId: `msg-${task.requestId}` }
    return await callRemote({ agent, link, clock: net.clock, maxOutputBytes: CALLER_MAX_BYTES }, message, run)
  } catch (error) {
    if (run.signal.aborted) return { ok: false, code: 'CANCELED', message: 'canceled' }
    // The caller is the operator, who gave the address and may see it.
    const { kind, message } = remoteFaultOf(error)
    return failedRemote(agent, { kind, printed: message })
  }
}

function hintOf(skill: string, skills: readonly string[]): string {
  const near = nearest(skill, skills)
  if (near.length > 0) return `did you mean ${near.map((one) => shown(one)).join(' or ')}?`
  return skills.length === 0
    ? 'it lists none'
    : `it has ${skills
        .slice(0, NAMED)
        .map((one) => shown(one))
        .join(', ')}`
}
