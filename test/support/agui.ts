import { EventSchema } from '@ag-ui/core/schemas'

/** An event as a client has it. */
export type WireEvent = Readonly<Record<string, unknown>> & {
  readonly type: string
  readonly delta?: string
  readonly stepName?: string
  readonly outcome?: { readonly type: string; readonly interrupts?: readonly WireInterrupt[] }
}

/** What a run waits for. */
export interface WireInterrupt {
  readonly id: string
  readonly reason: string
  readonly message?: string
}

/** Why a client of AG-UI 1.0 would refuse these events as one whole run; null when it takes them. */
export function runFault(events: readonly WireEvent[]): string | null {
  const open = new Set<string>()
  const known = new Set<string>()
  let state = 'before' as 'before' | 'active' | 'ended'
  for (const [place, event] of events.entries()) {
    const parsed = EventSchema.safeParse(event)
    const fault = parsed.success ? turn(event) : parsed.error.message
    if (fault !== null) return `event ${place}, ${JSON.stringify(event)}: ${fault}`
  }
  return state === 'ended' ? null : `the run is ${state}`

  function turn(event: WireEvent): string | null {
    const { type, messageId, stepName } = event
    if (state === 'ended') return 'behind the end'
    if (type === 'RUN_STARTED') return state === 'active' ? 'a run in a run' : ((state = 'active'), null)
    if (type === 'RUN_ERROR') return (state = 'ended'), null
    if (state === 'before') return 'before the beginning'
    if (type === 'RUN_FINISHED') return open.size > 0 ? `${[...open].join()} is open` : ((state = 'ended'), null)
    const item = type.startsWith('TEXT')
      ? `text ${String(messageId)}`
      : type.startsWith('STEP')
        ? `step ${String(stepName)}`
        : null
    return item === null ? (type === 'CUSTOM' ? null : 'of a kind that is not sent') : pair(event, item)
  }

  function pair({ type, delta }: WireEvent, item: string): string | null {
    if (type.endsWith('START') || type.endsWith('STARTED')) {
      if (open.has(item)) return 'is open already'
      // A text whose id was used goes on where it was: none of ours is meant so.
      if (item.startsWith('text') && known.has(item)) return 'was there before'
      open.add(item)
      known.add(item)
      return null
    }
    if (!open.has(item)) return 'is not open'
    // Clients before 1.0 refuse it.
    if (delta === '') return 'says nothing'
    if (type.endsWith('END') || type.endsWith('FINISHED')) open.delete(item)
    return null
  }
}
