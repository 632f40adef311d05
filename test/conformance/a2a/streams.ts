import { isRecord } from '../../../src/kit/json.js'
import type { StreamWants } from './cases.js'
import { faultsOf } from './matches.js'

type Event = Readonly<Record<string, unknown>>

const FINAL = ['COMPLETED', 'FAILED', 'CANCELED', 'REJECTED']

/** The state of the task after an event of a stream, or after a notification; undefined: it has none. */
function stateOf(event: Event): unknown {
  const inner = isRecord(event['body']) ? event['body'] : event
  const holder = [inner['task'], inner['statusUpdate']].find(isRecord)
  return isRecord(holder?.['status']) ? holder['status']['state'] : undefined
}

function rankOf(state: unknown): number {
  const name = String(state).replace('TASK_STATE_', '')
  return name === 'SUBMITTED' ? 0 : FINAL.includes(name) ? 2 : 1
}

/** The differences of events from expectations. `other`: the events of the stream that `endsLike` names. */
export function streamFaults(events: readonly Event[], wants: StreamWants, other: readonly Event[] = []): string[] {
  const shown = events.map((event) => ({ ...event, state: stateOf(event) }))
  const faults: string[] = []
  const { least = 0, most = Number.POSITIVE_INFINITY } = wants
  if (events.length < least || events.length > most) faults.push(`there are ${events.length} events: ${brief(events)}`)
  for (const [name, at] of [
    ['first', 0],
    ['last', -1]
  ] as const) {
    const matchers = wants[name]
    if (matchers !== undefined) faults.push(...faultsOf(shown.at(at), matchers).map((text) => `${name} event: ${text}`))
  }
  const { some, every, count } = wants
  if (some !== undefined && !shown.some((event) => faultsOf(event, some).length === 0))
    faults.push(`no event is like ${JSON.stringify(some)}: ${brief(events)}`)
  if (every !== undefined) faults.push(...shown.flatMap((event) => faultsOf(event, every)))
  if (count !== undefined && shown.filter((event) => faultsOf(event, count.of).length === 0).length < count.least)
    faults.push(`fewer than ${count.least} events are like ${JSON.stringify(count.of)}: ${brief(events)}`)
  return [...faults, ...orderFaults(shown, wants), ...likeFaults(events, { wants, other })]
}

function orderFaults(shown: readonly (Event & { readonly state: unknown })[], wants: StreamWants): string[] {
  if (wants.repeats === true && new Set(shown.map(({ id }) => id)).size === shown.length)
    return ['no notification came twice']
  if (wants.forward !== true) return []
  const ranks = shown.filter(({ state }) => state !== undefined).map(({ state }) => rankOf(state))
  const isBack = ranks.some((rank, at) => rank < (ranks[at - 1] ?? 0) || (ranks[at - 1] === 2 && rank === 2))
  return isBack ? [`the states go back: ${shown.map(({ state }) => String(state)).join(', ')}`] : []
}

function likeFaults(
  events: readonly Event[],
  { wants, other }: { readonly wants: StreamWants; readonly other: readonly Event[] }
): string[] {
  if (wants.endsLike === undefined) return []
  // Each stream begins with the task as it then was.
  const after = (all: readonly Event[]): string[] =>
    all.filter((event) => !('task' in event)).map((event) => JSON.stringify(event))
  const [own, theirs] = [after(events), after(other)]
  const [shorter, longer] = own.length <= theirs.length ? [own, theirs] : [theirs, own]
  const isSame = shorter.length > 0 && longer.slice(-shorter.length).join('\n') === shorter.join('\n')
  return isSame ? [] : [`the streams differ: ${brief(events)} and ${brief(other)}`]
}

function brief(events: readonly Event[]): string {
  return JSON.stringify(events).slice(0, 400)
}
