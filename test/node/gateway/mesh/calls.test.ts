import test, { type Assert } from 'brittle'
import { encodeCall, type CallPart } from '../../../../src/domain/channel/call.js'
import { utf8 } from '../../../../src/kit/ids.js'
import { CALL_STALL_MS } from '../../../../src/node/gateway/mesh/inbound-calls.js'
import { CALL_WINDOW_BYTES, MAX_CALLS } from '../../../../src/node/gateway/mesh/outbound-calls.js'
import type { AnswerItem, CallPiece, CallRequest, MemberCall } from '../../../../src/ports/member-calls.js'
import { gathered, settled } from '../../../support/calls.js'
import { type FakeNode, World } from '../../../support/fake-node.js'

const REQUEST: CallRequest = { path: '/a2a', parameters: {}, body: utf8('{}') }

async function pair(
  t: Assert
): Promise<{ readonly world: World; readonly owner: FakeNode; readonly member: FakeNode }> {
  const world = new World(t)
  const [owner, member] = [await world.owner(), await world.member('m')]
  await world.link(owner, member)
  return { world, owner, member }
}

/** Calls that a test ends. */
function held(node: FakeNode): MemberCall[] {
  const calls: MemberCall[] = []
  node.core.memberCalls.serve((call) => {
    calls.push(call)
    return new Promise(() => {})
  })
  return calls
}

function send(from: FakeNode, to: FakeNode, part: CallPart): void {
  from.core.peers.send(to.id, { kind: 'call', bytes: encodeCall(part) })
}

test('a call is answered once, and says whose link it came over', async (t) => {
  const { world, owner, member } = await pair(t)
  const asked: MemberCall[] = []
  owner.core.memberCalls.serve(async (call) => {
    asked.push(call)
    return { body: () => call.body }
  })
  const large = JSON.stringify('x'.repeat(300_000))
  const call = gathered(
    member.core.memberCalls.open(owner.id, { ...REQUEST, parameters: { a: 'b' }, body: utf8(large) })
  )
  t.is(await settled(world, call.end), 'done')
  t.alike([call.pieces.length, JSON.stringify(call.pieces[0]?.json)], [1, large])
  t.alike([asked[0]?.peer, asked[0]?.path, asked[0]?.parameters], [member.id, '/a2a', { a: 'b' }])
  t.absent(member.core.memberCalls.has(owner.id) || owner.core.memberCalls.has(member.id), 'nothing of it is left')
})

test('a node that serves none says so, and one that is not reached is offline', async (t) => {
  const { world, owner, member } = await pair(t)
  const early = gathered(member.core.memberCalls.open(owner.id, REQUEST))
  await world.settle()
  owner.core.memberCalls.serve(null)
  t.is(await settled(world, early.end), 'CAPABILITY_NOT_FOUND', 'events during its start wait until it knows')
  t.is(await settled(world, gathered(member.core.memberCalls.open(owner.id, REQUEST)).end), 'CAPABILITY_NOT_FOUND')
  world.net.disconnect(owner.id, member.id)
  t.is(await settled(world, gathered(member.core.memberCalls.open(owner.id, REQUEST)).end), 'PEER_OFFLINE')
})

test('a caller that does not read stops its stream, and no other; after it has read, the stream continues', async (t) => {
  const { world, owner, member } = await pair(t)
  const size = 100_000
  let made = 0
  async function* endless(): AsyncIterable<AnswerItem> {
    for (; made < 60; made++) yield { generation: made, body: () => utf8(JSON.stringify('y'.repeat(size))) }
  }
  owner.core.memberCalls.serve((call) =>
    Promise.resolve(
      call.path === '/a2a' ? { items: endless(), faultBody: () => utf8('{}') } : { body: () => call.body }
    )
  )
  const pieces = member.core.memberCalls.open(owner.id, REQUEST)[Symbol.asyncIterator]()
  const first = await settled(world, pieces.next())
  await world.settle()
  t.ok(made * size <= CALL_WINDOW_BYTES + 3 * size, `made ${made} of 60`)
  const other = gathered(member.core.memberCalls.open(owner.id, { ...REQUEST, path: '/other' }))
  t.is(await settled(world, other.end), 'done', 'others go on meanwhile')
  const rest: CallPiece[] = []
  const read = async (): Promise<void> => {
    for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) rest.push(next.value)
  }
  await settled(world, read())
  t.alike([first.done, rest.length, made], [false, 59, 60])
})

test('a caller that reads nothing for too long is cut off', async (t) => {
  const { world, owner, member } = await pair(t)
  let isEnded = false
  async function* endless(): AsyncIterable<AnswerItem> {
    try {
      for (;;) yield { generation: null, body: () => new Uint8Array(CALL_WINDOW_BYTES) }
    } finally {
      isEnded = true
    }
  }
  owner.core.memberCalls.serve(() => Promise.resolve({ items: endless(), faultBody: () => utf8('{}') }))
  const pieces = member.core.memberCalls.open(owner.id, REQUEST)[Symbol.asyncIterator]()
  await settled(world, pieces.next())
  await world.pass(CALL_STALL_MS + 1000, 5000)
  t.ok(isEnded)
  t.absent(owner.core.memberCalls.has(member.id))
  await t.exception(settled(world, pieces.next()), /cut/)
})

test('a member has a bounded number of open calls; one that it hangs up frees a slot', async (t) => {
  const { world, owner, member } = await pair(t)
  const calls = held(owner)
  for (let id = 1; id <= MAX_CALLS + 1; id++) send(member, owner, { type: 'request', id, ...REQUEST })
  await world.settle()
  t.is(calls.length, MAX_CALLS)
  send(member, owner, { type: 'hangup', id: 1 })
  await world.settle()
  t.ok(calls[0]?.signal.aborted)
  const opened = Array.from({ length: MAX_CALLS }, () => gathered(owner.core.memberCalls.open(member.id, REQUEST)))
  void opened
  t.is(
    await settled(world, gathered(owner.core.memberCalls.open(member.id, REQUEST)).end),
    'OVERLOADED',
    'nor does a caller here'
  )
  t.alike(owner.links.faults, [], 'an honest member may have counted otherwise')
})

test('a message that no honest member sends cuts its link: an invalid part, two calls of one number, more than the window', async (t) => {
  const { world, owner, member } = await pair(t)
  held(owner)
  const cases: (() => void)[] = [
    () => member.core.peers.send(owner.id, { kind: 'call', bytes: Uint8Array.of(9, 9, 9) }),
    () => {
      send(member, owner, { type: 'request', id: 5, ...REQUEST })
      send(member, owner, { type: 'request', id: 5, ...REQUEST })
    },
    () => {
      gathered(owner.core.memberCalls.open(member.id, REQUEST)).end.catch(() => {})
    }
  ]
  for (const [at, run] of cases.slice(0, 2).entries()) {
    run()
    await world.settle()
    t.is(owner.links.faults.length, at + 1)
    await world.link(owner, member)
  }
  held(member)
  const slow = owner.core.memberCalls.open(member.id, REQUEST)[Symbol.asyncIterator]()
  const first = slow.next()
  await world.settle()
  for (let at = 0; at < 4; at++)
    send(member, owner, { type: 'item', id: 1, generation: at, body: new Uint8Array(CALL_WINDOW_BYTES / 2 + 1) })
  await world.settle()
  t.is(owner.links.faults.length, 3)
  t.is((await first).done, false)
})

test('words of calls that nobody knows are passed over: they cross with the end of a call', async (t) => {
  const { world, owner, member } = await pair(t)
  held(owner)
  for (const part of [
    { type: 'credit', id: 9, bytes: 5 },
    { type: 'hangup', id: 9 },
    { type: 'item', id: 9, generation: 1, body: REQUEST.body },
    { type: 'answer', id: 9, body: REQUEST.body },
    { type: 'end', id: 9, how: 'done' }
  ] as const)
    send(member, owner, part)
  await world.settle()
  t.alike(owner.links.faults, [])
})

test('a link that comes or goes ends the calls of both ends, since something may be lost', async (t) => {
  const { world, owner, member } = await pair(t)
  const calls = held(owner)
  const one = gathered(member.core.memberCalls.open(owner.id, REQUEST))
  await world.settle()
  world.net.disconnect(owner.id, member.id)
  t.is(await settled(world, one.end), 'CHANNEL_CLOSED')
  t.ok(calls[0]?.signal.aborted)
  await world.link(owner, member)
  const two = gathered(member.core.memberCalls.open(owner.id, REQUEST))
  await world.settle()
  world.net.connect(owner.id, member.id)
  t.is(await settled(world, two.end), 'CHANNEL_CLOSED', 'a second link: order across both is not kept')
  t.ok(calls[1]?.signal.aborted)
})
