import {
  createSwarm,
  stepSwarm,
  type SwarmEffect,
  type SwarmInput,
  type SwarmParts,
  type SwarmState
} from '../../../src/domain/swarm/machine.js'
import { NodeError } from '../../../src/kit/errors.js'

/** Why a run of these tests fails. */
export const ERROR = new NodeError('TASK_FAILED', 'it broke').toBody()

/** A swarm with short ways to step it; times in milliseconds from 0. */
export class Swarm {
  readonly state: SwarmState

  constructor(parts: Partial<SwarmParts> & { names?: readonly string[] } = {}) {
    const items = parts.items ?? (parts.names ?? ['one']).map((name) => ({ name }))
    const { names: _names, ...rest } = parts
    this.state = createSwarm(
      { id: 's', maxParallel: 10, retries: 2, deadlineAt: 100_000, leaseMs: 1000, ...rest, items },
      0
    )
  }

  do(input: SwarmInput, now = 0): readonly SwarmEffect[] {
    return stepSwarm(this.state, input, now).effects
  }

  join(agent: string, slots = 1, now = 0): readonly SwarmEffect[] {
    return this.do({ type: 'accepted', agent, slots }, now)
  }

  ok(index: number, attempt: number, agent: string, now = 1): readonly SwarmEffect[] {
    return this.do({ type: 'result', index, attempt, agent, outcome: { ok: true, result: 'fine' } }, now)
  }

  fail(index: number, attempt: number, agent: string, now = 1): readonly SwarmEffect[] {
    return this.do({ type: 'result', index, attempt, agent, outcome: { ok: false, error: ERROR } }, now)
  }
}

/** The leases among effects, as `index:agent#attempt`. */
export function leases(effects: readonly SwarmEffect[]): string[] {
  return effects.flatMap((effect) =>
    effect.type === 'lease' ? [`${effect.index}:${effect.agent}#${effect.attempt}`] : []
  )
}

/** The effects of one type. */
export function ofType<T extends SwarmEffect['type']>(
  effects: readonly SwarmEffect[],
  type: T
): Extract<SwarmEffect, { type: T }>[] {
  return effects.filter((effect): effect is Extract<SwarmEffect, { type: T }> => effect.type === type)
}

/** A failed run with an error. */
export function failWith(
  swarm: Swarm,
  error: Partial<typeof ERROR>,
  { attempt = 1, agent = 'a', now = 5 } = {}
): readonly SwarmEffect[] {
  return swarm.do(
    { type: 'result', index: 0, attempt, agent, outcome: { ok: false, error: { ...ERROR, ...error } } },
    now
  )
}
