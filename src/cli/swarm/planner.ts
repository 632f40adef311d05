import { NodeError } from '../../kit/errors.js'
import { isRecord } from '../../kit/json.js'
import type { Plan } from '../../domain/swarm/plan.js'
import type { SwarmRequest } from '../../ports/swarm-api.js'
import type { CommandContext } from '../context.js'
import { jsonLine } from '../terminal/output.js'
import { timeoutSteps } from '../timeouts.js'

/** Capability of an agent that turns goals into plans. */
export const PLANNER = 'swarm.plan'
/** Agents in the input of a planner, at most. */
const AGENTS_MAX = 256

/** Does an agent that is not offline offer to plan? */
export async function hasPlanner({ api }: CommandContext): Promise<boolean> {
  const { agents } = await api().call('agents.list', {})
  return agents.some(({ capabilities, status }) => status !== 'offline' && capabilities.includes(PLANNER))
}

/**
 * Calls an agent to plan a goal. Its input lists agents with their capabilities, and the output of the last check. The
 * node validates the plan before it runs.
 * @throws NodeError INVALID_OUTPUT when the result is no object; the error of the call
 */
export async function requestPlan(
  context: CommandContext,
  request: Pick<SwarmRequest, 'goal' | 'input' | 'round' | 'justification' | 'deadlineMs'>
): Promise<Plan> {
  const { goal, input, round, justification, deadlineMs } = request
  const { agents } = await context.api().call('agents.list', {})
  const able = agents
    .filter(({ status }) => status !== 'offline')
    .slice(0, AGENTS_MAX)
    .map(({ address, capabilities, labels, tier }) => ({ address, capabilities, labels, tier }))
  const printed = {
    goal,
    agents: able,
    ...(input === undefined ? {} : { input }),
    ...(round === undefined ? {} : { round: round.number, check: round.check })
  }
  const reply = await context.api().call('message.call', {
    agent: null,
    capability: PLANNER,
    input: printed,
    ...(justification === undefined ? {} : { justification }),
    ...(deadlineMs === undefined ? {} : { timeoutMs: deadlineMs })
  })
  if (reply.error !== null) {
    const next = timeoutSteps(reply, { name: '--deadline', givenMs: deadlineMs }) ?? ['a2a-node agents']
    throw new NodeError(reply.error.code, `no plan was made: ${reply.error.message}`, { next })
  }
  const { payload } = reply
  const plan = isRecord(payload) && isRecord(payload['plan']) ? payload['plan'] : payload
  if (isRecord(plan)) return plan as unknown as Plan
  throw new NodeError('INVALID_OUTPUT', `${reply.agent} made no plan, but ${jsonLine(payload ?? null).slice(0, 200)}`)
}
