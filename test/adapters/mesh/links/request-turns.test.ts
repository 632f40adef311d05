import path from 'node:path'
import test, { type Assert } from 'brittle'
import c from 'compact-encoding'
import fc from 'fast-check'
import Protomux from 'protomux'
import type { Channel, ChannelOptions } from 'protomux'
import { coreStore } from '../../../../src/adapters/mesh/cores/core-store.js'
import { guardMux } from '../../../../src/adapters/mesh/links/guarded-mux.js'
import { MAX_WAITING, RequestTurns } from '../../../../src/adapters/mesh/links/request-turns.js'
import { tempDir } from '../../../support/tmp.js'
import { streamPair } from '../stream-pair.js'
import { holds } from '../../../support/holds.js'

const WINDOW = 262_144

/** An engine behind the turns of one link: what it was handed, and what it has not answered yet. */
class Engine {
  readonly handed: string[] = []
  readonly open: (() => void)[] = []
  readonly #turns: RequestTurns
  readonly #options: ChannelOptions
  readonly #channels = [0, 1, 2].map((at) => ({ at }) as unknown as Channel)
  isDrained = true
  tooMany = 0
  failed = 0
  /** Handed over while the stream took nothing, or beyond the window. */
  wrong = 0
  #lastBytes = 0

  constructor() {
    this.#turns = new RequestTurns({
      isDrained: () => this.isDrained,
      onTooMany: () => this.tooMany++,
      onFailed: () => this.failed++
    })
    const onmessage = (message: unknown, channel: Channel): Promise<void> =>
      this.#onRequest(message as { id: number }, channel)
    const { messages, ...rest } = this.#turns.apply<null>({
      protocol: 'hypercore/alpha',
      messages: [{}, { onmessage }, { onmessage: () => {} }, { encoding: c.raw }]
    })
    this.#options = { ...rest, messages: messages ?? [] }
  }

  get waiting(): number {
    return this.#turns.waiting
  }

  say(type: 1 | 2, channel: number, id: number): void {
    const message = type === 1 ? { id } : { request: id }
    this.#options.messages?.[type]?.onmessage?.(message as unknown as Uint8Array, this.#channels[channel])
  }

  /** The oldest request is answered with a block of so many bytes. */
  answer(bytes: number): void {
    const data = { block: { value: new Uint8Array(bytes) } } as unknown as Uint8Array
    this.#options.messages?.[3]?.encoding?.preencode({ start: 0, end: 0, buffer: null }, data)
    this.#lastBytes = bytes
    this.open.shift()?.()
  }

  close(channel: number): void {
    this.#options.onclose?.(true, this.#channels[channel])
  }

  drain(): void {
    this.isDrained = true
    this.#options.ondrain?.(this.#channels[0])
  }

  #onRequest({ id }: { id: number }, channel: Channel): Promise<void> {
    this.handed.push(`${(channel as unknown as { at: number }).at}/${id}`)
    if (!this.isDrained || (this.open.length > 0 && (this.open.length + 1) * this.#lastBytes > WINDOW)) this.wrong++
    return new Promise((resolve) => this.open.push(resolve))
  }
}

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('request' as const), channel: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cancel' as const), channel: fc.nat(2), back: fc.nat(5) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('answer' as const),
      bytes: fc.constantFrom(0, 100, 4000, 300_000, 1_000_000)
    })
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('close' as const), channel: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'full' as const }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'drain' as const }) }
)

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn++) await Promise.resolve()
}

test('each request is answered once unless its peer gives it up, few at once where blocks are large, and none while the peer does not read', async (t) => {
  await holds(
    t,
    fc.asyncProperty(fc.array(step, { maxLength: 120 }), async (steps) => {
      const engine = new Engine()
      const asked: string[] = []
      const givenUp = new Set<string>()
      for (const [at, one] of steps.entries()) {
        if (one.kind === 'request') {
          asked.push(`${one.channel}/${at}`)
          engine.say(1, one.channel, at)
        } else if (one.kind === 'cancel') {
          const id = Number(
            asked
              .filter((name) => name.startsWith(`${one.channel}/`))
              .at(-1 - one.back)
              ?.split('/')[1] ?? -1
          )
          if (!engine.handed.includes(`${one.channel}/${id}`)) givenUp.add(`${one.channel}/${id}`)
          engine.say(2, one.channel, id)
        } else if (one.kind === 'answer') engine.answer(one.bytes)
        else if (one.kind === 'close') {
          for (const name of asked)
            if (name.startsWith(`${one.channel}/`) && !engine.handed.includes(name)) givenUp.add(name)
          engine.close(one.channel)
        } else if (one.kind === 'full') engine.isDrained = false
        else engine.drain()
        await settle()
      }
      engine.drain()
      while (engine.open.length > 0) {
        engine.answer(10)
        await settle()
      }
      const due = asked.filter((name) => !givenUp.has(name))
      return (
        engine.failed === 0 &&
        engine.wrong === 0 &&
        engine.waiting === 0 &&
        JSON.stringify([...engine.handed].sort()) === JSON.stringify([...due].sort())
      )
    }),
    300
  )
})

test('cores take turns, and a link on which more wait than any peer needs is given up', async (t) => {
  const engine = new Engine()
  for (let id = 0; id < 4; id++) engine.say(1, 0, id)
  engine.say(1, 1, 9)
  for (let answer = 0; answer < 2; answer++) {
    engine.answer(1_000_000)
    await settle()
  }
  t.ok(engine.handed.includes('1/9'), engine.handed.join(' '))
  engine.isDrained = false
  for (let id = 0; engine.waiting < MAX_WAITING; id++) engine.say(1, 2, id)
  t.is(engine.tooMany, 0)
  await t.exception(() => engine.say(1, 1, 1), /too many requests/)
  t.is(engine.tooMany, 1)
  t.is(engine.waiting, MAX_WAITING)
})

test('a peer that asks for all large blocks of a core at once has few of them read at once, and gets them all', async (t: Assert) => {
  const dir = await tempDir(t)
  const [from, to] = [coreStore(path.join(dir, 'from')), coreStore(path.join(dir, 'to'))]
  for (const store of [from, to]) t.teardown(() => store.close())
  const core = from.get({ name: 'large' })
  await core.ready()
  await core.append(Array.from({ length: 40 }, () => new Uint8Array(400_000)))
  const copy = to.get({ key: core.key })
  await copy.ready()
  copy.core.replicator.setInflightRange(512, 512)
  const [one, other] = await streamPair(t, 'ann', 'bob')
  const mux = Protomux.from(one)
  guardMux(mux, (reason) => t.fail(reason))
  core.replicate(mux)
  copy.replicate(Protomux.from(other))
  let most = 0
  core.on('upload', () => {
    const peers = core.peers as unknown as { remoteRequests: Map<number, unknown> }[]
    for (const { remoteRequests } of peers) most = Math.max(most, remoteRequests.size)
  })
  const blocks = await Promise.all(Array.from({ length: 40 }, (_, at) => copy.get(at)))
  t.ok(blocks.every((block) => block?.byteLength === 400_000))
  t.ok(most <= 3, `${most} at once`)
})
