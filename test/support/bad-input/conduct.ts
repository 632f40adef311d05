import { HEARTBEAT_MS, BEHIND_WAIT_MS } from '../../../src/adapters/a2a/server/event-stream.js'
import { WHOLE_ANSWER_MS } from '../../../src/node/gateway/task-intake.js'
import { CALL_STALL_MS } from '../../../src/node/gateway/mesh/inbound-calls.js'
import type { CallPiece } from '../../../src/ports/member-calls.js'
import { statusOf } from '../../adapters/http/raw-http.js'
import { settled } from '../calls.js'
import { eventually } from '../agents/eventually.js'
import { badScene, flood } from './scene.js'
import { type Cell, onHttp, type Row } from './table.js'
import { type BadRequest, type HttpWire, rpc, saying, told, v1 } from './wires.js'

/** How each wire says that a request did not come in time. */
const SLOW: Readonly<Record<HttpWire, string>> = {
  'JSON-RPC 1.0': '408 -32600 TIMEOUT',
  'JSON-RPC 0.3': '408 -32600 TIMEOUT',
  'REST 1.0': '408 DEADLINE_EXCEEDED TIMEOUT',
  'REST 0.3': '408 -32600 TIMEOUT',
  facade: '408 timeout',
  'AG-UI': '408 DEADLINE_EXCEEDED TIMEOUT'
}

/** A body that is announced and does not come. */
export const slowBodies: Row = {
  ...onHttp((wire) => async (t) => {
    // Node's own clock ends it.
    const it = await badScene(t, { headersTimeoutMs: 100, requestTimeoutMs: 200, checkMs: 20, drainMs: 50 })
    const connection = it.open(saying(wire, 'x'), 100_000)
    const text = await connection.end()
    const [head = '', body = ''] = text.split('\r\n\r\n')
    const type = /content-type: (\S+)/i.exec(head)?.[1] ?? ''
    t.is(told(wire, { status: statusOf(text), type, text: body }), SLOW[wire])
    t.is(it.talk.tasks.length, 0, 'nothing was done')
  }),
  mesh: 'a call comes whole or not at all: parts of frames that are not completed go with their link'
}

const streaming = (wire: HttpWire, text: string): BadRequest => saying(wire, text, { stream: true })

/** A reader of a stream that takes nothing of it. */
export const deafReaders: Row = {
  ...onHttp((wire) => async (t, { http }) => {
    const it = await http()
    const idle = it.clock.pending
    const connection = it.open(streaming(wire, 'flood'))
    connection.socket.pause()
    // The heartbeat of the stream, and how long it waits for its reader.
    await eventually(() => it.clock.pending === idle + 2)
    it.clock.advance(BEHIND_WAIT_MS)
    await eventually(() => it.following() === 0 && it.clock.pending === idle)
    t.pass('it is cut, and its state is freed')
    connection.socket.resume()
    await connection.closed
  }),
  mesh: async (t, { mesh }) => {
    const it = await mesh()
    const call = it.open({ body: rpc('SendStreamingMessage', v1({ messageId: 'deaf' }, 'wait')).body ?? {} })
    const pieces = call[Symbol.asyncIterator]()
    const first = pieces.next()
    await it.world.settle()
    await it.world.pass(WHOLE_ANSWER_MS)
    t.absent((await first).done)
    flood(it.talk.open[0]?.run ?? { progress: () => {} }, 40)
    await it.world.pass(CALL_STALL_MS + 1000, 1000)
    t.absent(it.owner.core.memberCalls.has(it.members.alice.id), 'the call is over at the node')
    t.is(await settled(it.world, endOf(pieces)), 'CHANNEL_CLOSED', 'and its caller learns that it was cut')
  }
}

async function endOf(pieces: AsyncIterator<CallPiece>): Promise<string> {
  try {
    while ((await pieces.next()).done !== true) continue
    return 'done'
  } catch (error) {
    return (error as { readonly code?: string }).code ?? String(error)
  }
}

/** A client that vanishes in the middle of a stream. */
export const dropped: Row = {
  ...onHttp((wire) => async (t, { http }) => {
    const it = await http()
    const idle = it.clock.pending
    const working = it.talk.open.length
    const connection = it.open(streaming(wire, 'wait'))
    await connection.until('\r\n\r\n')
    await eventually(() => it.talk.open.length === working + 1 && it.following() === 1)
    connection.socket.resetAndDestroy()
    await eventually(() => it.following() === 0 && it.clock.pending === idle)
    t.pass('nothing of it is kept')
    if (wire === 'facade') await eventually(() => it.talk.open.length === working)
    t.is(
      it.talk.open.length,
      working + (wire === 'facade' ? 0 : 1),
      'its work continues; a run of the facade ends with its client'
    )
    it.clock.advance(HEARTBEAT_MS)
  }),
  mesh: async (t, { mesh }) => {
    const it = await mesh()
    const call = it.open({ body: rpc('SendStreamingMessage', v1({ messageId: 'gone' }, 'wait')).body ?? {} })
    const pieces = call[Symbol.asyncIterator]()
    const first = pieces.next()
    await it.world.settle()
    await it.world.pass(WHOLE_ANSWER_MS)
    t.absent((await first).done)
    it.world.net.disconnect(it.owner.id, it.members.alice.id)
    await it.world.settle()
    t.absent(it.owner.core.memberCalls.has(it.members.alice.id), 'none of it is stored')
    t.is(await settled(it.world, endOf(pieces)), 'CHANNEL_CLOSED')
    await it.world.link(it.owner, it.members.alice)
  }
}

/** Bodies that only begin: their client vanishes. */
export const halfBodies: Row = {
  ...onHttp(
    (wire): Cell =>
      async (t, { http }) => {
        const it = await http()
        const before = it.talk.tasks.length
        const connection = it.open(saying(wire, 'x'), 100_000)
        connection.socket.once('connect', () => setImmediate(() => connection.socket.resetAndDestroy()))
        await connection.closed
        t.ok(await it.isServing(wire))
        t.is(it.talk.tasks.length, before + 1, 'only what came whole was done')
      }
  ),
  mesh: 'a call comes whole or not at all'
}
