import { isRecord } from '../../kit/json.js'
import { type CardBody, defaultCapability, type SideEffect } from '../card/card.js'
import type { MessageType } from '../envelope/envelope.js'

/** The work that a message requests from its target. */
export interface AskedWork {
  /** null: it names none, and its target has none to begin with. */
  readonly capability: string | null
  /** By the target's card. A capability that the card lacks counts as `exec`; null when nothing would be done. */
  readonly sideEffect: SideEffect | null
}

/**
 * The work that a message asks of the agent of a card: the capability it names (null: the default one) and its side
 * effect.
 */
export function askedWork(card: Pick<CardBody, 'capabilities'> | undefined, named: string | null): AskedWork {
  const known =
    named === null
      ? card === undefined
        ? null
        : defaultCapability(card)
      : card?.capabilities.find((one) => one.id === named)
  const capability = named ?? known?.id ?? null
  return { capability, sideEffect: capability === null ? null : (known?.sideEffect ?? 'exec') }
}

/** True for work without side effects. An undeclared side effect counts as `exec`. */
export function changesNothing(sideEffect: SideEffect | null = 'exec'): boolean {
  return sideEffect === null || sideEffect === 'none' || sideEffect === 'read'
}

/**
 * The side effect for which a broadcast leaves the agent of a card out, as one text may run on every machine; null: it
 * takes part. A request or notification counts with each capability it names; other types run nothing.
 */
export function broadcastBar(
  card: Pick<CardBody, 'capabilities'> | undefined,
  type: MessageType,
  payload: unknown
): SideEffect | null {
  if (type !== 'request' && type !== 'notification') return null
  const works = namedCapabilities(type, payload).map((named) => askedWork(card, named))
  return works.find(({ sideEffect }) => !changesNothing(sideEffect))?.sideEffect ?? null
}

/** The rule by which {@link broadcastBar} leaves an agent out, for people. */
export function barText(sideEffect: SideEffect): string {
  return `broadcast: only work without side effects (${sideEffect})`
}

/** Capabilities of one proposal that are checked, the limit of its payload. */
const MAX_NAMED = 64

/** The capabilities that a message names, as its sender wrote them; null stands for the default one. Never throws. */
export function namedCapabilities(type: MessageType, payload: unknown): readonly [string | null, ...(string | null)[]] {
  if (!isRecord(payload)) return [null]
  if (type === 'request') return [typeof payload['capability'] === 'string' ? payload['capability'] : null]
  const named: unknown = type === 'task-proposal' ? payload['requiredCapabilities'] : []
  const [first, ...others] = Array.isArray(named)
    ? named.slice(0, MAX_NAMED).filter((one) => typeof one === 'string')
    : []
  return first === undefined ? [null] : [first, ...others]
}
