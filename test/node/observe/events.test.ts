import test from 'brittle'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { NodeEvents } from '../../../src/node/observe/events.js'
import { A2AObservability } from '../../../src/node/observe/observability.js'
import type { EventQuery } from '../../../src/ports/node-api.js'
import { ManualClock } from '../../support/manual-clock.js'

function events(): { events: NodeEvents; lines: string[]; clock: ManualClock } {
  const clock = new ManualClock()
  const lines: string[] = []
  const telemetry = new MemoryTelemetry({ clock, level: 'error', format: 'text', write: (line) => lines.push(line) })
  return { events: new NodeEvents(clock, telemetry), lines, clock }
}

test('events are stored with their time and sent to listeners', (t) => {
  const { events: list, clock } = events()
  const heard: string[] = []
  const stop = list.on((event) => heard.push(event.type))
  list.add('peer', 'a peer is online', { peer: 'b' })
  clock.advance(1000)
  stop()
  list.add('swarm', 'a swarm ended')
  t.alike(heard, ['peer'])
  t.alike(
    list.recent().map((event) => [event.at, event.type, event.data]),
    [
      ['2023-11-14T22:13:20.000Z', 'peer', { peer: 'b' }],
      ['2023-11-14T22:13:21.000Z', 'swarm', {}]
    ]
  )
})

test('the newest thousand are kept', (t) => {
  const { events: list } = events()
  for (let i = 0; i < 1500; i++) list.add('peer', `${i}`)
  t.is(list.recent().length, 1000)
  t.is(list.recent()[0]?.message, '500')
})

test('repeated events push out only each other', (t) => {
  const { events: list } = events()
  list.add('approval', 'a message that waited for approval: ALLOWED')
  for (let i = 0; i < 300; i++) list.add('peer', 'a peer is online', { i })
  for (let i = 0; i < 5000; i++) list.add('approval', 'a message waits for approval', { i })
  const kept = list.recent()
  t.is(kept.length, 1000)
  t.is(kept[0]?.message, 'a message that waited for approval: ALLOWED')
  t.is(kept.filter(({ type }) => type === 'peer').length, 300)
  t.alike(kept.at(-1)?.data, { i: 4999 })
})

test('a listener that throws harms nobody', (t) => {
  const { events: list, lines } = events()
  list.on(() => {
    throw new Error('oops')
  })
  let heard = 0
  list.on(() => heard++)
  list.add('peer', 'b')
  t.is(heard, 1)
  t.is(lines.length, 1)
})

test('events of the node and of single messages and tools are one list by time, with filters that all must match', (t) => {
  const { events: list, clock } = events()
  const traffic = new A2AObservability()
  list.add('peer', 'a peer is online', { peer: 'gpu-box' })
  clock.advance(1000)
  traffic.emit({
    type: 'message-sent',
    sender: 'text@1',
    recipient: 'host@2',
    routingPath: 'remote',
    timestamp: clock.now()
  })
  traffic.emit({
    type: 'tool-invocation',
    toolName: 'text.stats',
    duration: 3,
    success: false,
    code: 'TIMEOUT',
    timestamp: clock.now()
  })
  clock.advance(1000)
  list.add('refusal', 'a message was refused', { code: 'TIER_VIOLATION' })
  const pushed: string[] = []
  const sources = { traffic, namer: () => (address: string) => address.replace('@1', '@laptop') }
  const types = (query: EventQuery): string[] => {
    pushed.length = 0
    list.watch(query, { ...sources, push: ({ type }) => pushed.push(type) })()
    return [...pushed]
  }
  t.alike(types({}), ['peer', 'refusal'])
  t.alike(types({ all: true }), ['peer', 'message-sent', 'tool-invocation', 'refusal'])
  t.alike(types({ types: ['message-sent', 'peer'] }), ['peer', 'message-sent'])
  t.alike(types({ all: true, about: 'laptop' }), ['message-sent'])
  t.alike(types({ all: true, about: 'text' }), ['message-sent', 'tool-invocation'])
  t.alike(types({ all: true, failed: true }), ['tool-invocation', 'refusal'])
  t.alike(types({ all: true, failed: true, limit: 1 }), ['refusal'])
  t.alike(types({ all: true, since: clock.now() - 1000 }), ['message-sent', 'tool-invocation', 'refusal'])
  const stop = list.watch({ all: true, failed: true, limit: 1 }, { ...sources, push: ({ type }) => pushed.push(type) })
  pushed.length = 0
  list.add('peer', 'a peer is online')
  traffic.emit({ type: 'error', timestamp: clock.now() })
  traffic.emit({ type: 'routing-decision', success: true, timestamp: clock.now() })
  list.add('delivery-failed', 'a message was not carried on')
  stop()
  traffic.emit({ type: 'error', timestamp: clock.now() })
  t.alike(pushed, ['error', 'delivery-failed'])
})

test('a watch that wants no event of messages costs them nothing, and addresses are named only where an event matches', (t) => {
  const { events: list, clock } = events()
  const traffic = new A2AObservability()
  let [listeners, named] = [0, 0]
  const spied = {
    getRecentEvents: () => traffic.getRecentEvents(),
    on: (listener: Parameters<A2AObservability['on']>[0]) => {
      listeners++
      return traffic.on(listener)
    }
  }
  const namer = () => {
    named++
    return (address: string) => address
  }
  const pushed: string[] = []
  const sources = { traffic: spied, namer, push: ({ type }: { type: string }) => pushed.push(type) }
  const free: readonly EventQuery[] = [
    {},
    { failed: true },
    { about: 'x' },
    { types: ['peer', 'refusal'] },
    { all: true, types: ['swarm'] }
  ]
  for (const query of free) list.watch(query, sources)
  t.alike([listeners, named], [0, 0])
  const costly: readonly EventQuery[] = [
    { all: true, failed: true },
    { types: ['error'] },
    { all: true, since: clock.now() + 1 }
  ]
  for (const query of costly) list.watch(query, sources)
  t.is(listeners, 3)
  named = 0
  for (let i = 0; i < 100; i++)
    traffic.emit({ type: 'message-sent', sender: 'a@1', recipient: 'b@2', timestamp: clock.now() })
  t.alike([named, pushed.length], [0, 0])
  traffic.emit({ type: 'error', timestamp: clock.now() })
  t.alike([named, pushed.length], [2, 2])
  list.watch({ types: ['message-sent'] }, sources)
  named = 0
  list.add('peer', 'a peer is online')
  t.alike([pushed.slice(2 + 100), named], [['peer', 'peer'], 0])
})

test('events since any time are found, the time itself included, also beyond the years that a text can write', (t) => {
  const { events: list, clock } = events()
  list.add('peer', 'a peer is online')
  const found = (since: number): number => {
    let count = 0
    list.watch({ since }, { traffic: new A2AObservability(), namer: () => String, push: () => count++ })()
    return count
  }
  const times = [0, clock.now(), clock.now() + 1, Date.UTC(10_000, 0), 8.64e15, 8.64e15 + 1, Number.MAX_SAFE_INTEGER]
  t.alike(times.map(found), [1, 1, 0, 0, 0, 0, 0])
})
