import test from 'brittle'
import { LinkSlots } from '../../../../src/adapters/mesh/links/link-slots.js'
import type { PeerStream } from '../../../../src/adapters/mesh/links/peer-stream.js'

interface FakeStream {
  readonly peer: string
  readonly session: null | { readonly link: { closed: boolean } }
  readonly gate: { dismiss(refusal: { readonly code: string }): void }
}

/** Slots for two links, and the calls that they make. */
function slotsOf(
  streams: readonly (readonly [peer: string, state: 'open' | 'closed' | 'stranger'])[],
  idle: string | null
) {
  const calls: string[] = []
  const fakes = streams.map(([peer, state]): FakeStream => {
    const link = { closed: state === 'closed' }
    return {
      peer,
      session: state === 'stranger' ? null : { link },
      gate: { dismiss: ({ code }) => calls.push(`${peer} gets ${code}`) }
    }
  })
  const all = fakes as unknown as readonly PeerStream[]
  const slots = new LinkSlots(2, {
    streams: () => all,
    spare: () => all.find(({ peer }) => peer === idle)?.session?.link ?? null,
    rest: ({ peer }) => calls.push(`${peer} rests`)
  })
  return { slots, calls }
}

test('a slot is free as long as fewer links are open than there are slots; strangers and closed links take none', (t) => {
  const { slots, calls } = slotsOf(
    [
      ['a', 'open'],
      ['b', 'closed'],
      ['c', 'stranger']
    ],
    'a'
  )
  t.ok(slots.isFree('d') && slots.free('d'))
  t.alike(calls, [], 'no link ends for it')
})

test('when all slots are taken an idle link gives up its slot, and its peer gets the reason first', (t) => {
  const { slots, calls } = slotsOf(
    [
      ['a', 'open'],
      ['b', 'open']
    ],
    'b'
  )
  t.ok(slots.isFree('c'))
  t.alike(calls, [], 'to ask ends nothing')
  t.ok(slots.free('c'))
  t.alike(calls, ['b gets OVERLOADED', 'b rests'])
})

test('when all links are in use no slot is free', (t) => {
  const { slots, calls } = slotsOf(
    [
      ['a', 'open'],
      ['b', 'open']
    ],
    null
  )
  t.absent(slots.isFree('c') || slots.free('c'))
  t.alike(calls, [])
})

test('a further link to a linked peer needs no slot, and two links to one peer take one', (t) => {
  const { slots, calls } = slotsOf(
    [
      ['a', 'open'],
      ['b', 'open']
    ],
    null
  )
  t.ok(slots.isFree('b') && slots.free('b'))
  const twice = slotsOf(
    [
      ['a', 'open'],
      ['a', 'open']
    ],
    null
  )
  t.ok(twice.slots.isFree('c') && twice.slots.free('c'))
  t.alike([calls, twice.calls], [[], []])
})
