import fs from 'node:fs/promises'
import { createRequire } from 'node:module'
import test from 'brittle'
import type { Assert } from 'brittle'
import type { ApplyHost, ApplyNode, LogHead } from 'autobase'
import b4a from 'b4a'
import c from 'compact-encoding'
import type { Codec } from 'compact-encoding'
import Corestore from 'corestore'
import fc from 'fast-check'
import Hyperbee from 'hyperbee'
import type Hypercore from 'hypercore'
import type { NoiseStream } from 'hyperswarm'
import type { CoreLimit } from '../../../../src/domain/membership/log-share.js'
import { type CoreFault, GuardedBase, type LogGuard } from '../../../../src/adapters/mesh/log/guarded-base.js'
import { fromUtf8, keyToText, utf8 } from '../../../../src/kit/ids.js'
import { holds } from '../../../support/holds.js'
import { tempDir } from '../../../support/tmp.js'

interface Message {
  readonly version?: number
  readonly optimistic?: boolean
  readonly heads: readonly { readonly key: Uint8Array; readonly length: number }[]
  readonly batch: number
  readonly value: Uint8Array | null
  readonly trace?: unknown
}

const { OplogMessage } = createRequire(import.meta.url)('autobase/lib/messages.js') as { OplogMessage: Codec<unknown> }

/** Flips a bit. */
function flipped(bytes: Uint8Array, at: number | null): Uint8Array {
  if (at !== null) bytes[at % bytes.byteLength] = (bytes[at % bytes.byteLength] ?? 0) ^ (1 << (at % 8))
  return bytes
}

async function entries({ base }: Engine): Promise<unknown[]> {
  const all: unknown[] = []
  for await (const { key } of base.view.createReadStream()) all.push(key)
  return all
}

/** Resolves when two engines show the same: what writers wrote comes to each at its own time. */
function untilAlike(a: Engine, b: Engine): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = (): void => {
      void Promise.all([entries(a), entries(b)]).then(([one, other]) => {
        if (JSON.stringify(one) === JSON.stringify(other)) resolve()
      }, reject)
    }
    for (const { base } of [a, b]) base.on('update', look)
    look()
  })
}

interface Replicates {
  replicate(isInitiator: boolean): NoiseStream
}

function encode({ heads, batch, value, version = 2, optimistic = false, trace = null }: Message): Uint8Array {
  return c.encode(OplogMessage, {
    version,
    optimistic,
    checkpoint: null,
    digest: null,
    trace,
    node: { heads, batch, value }
  })
}

/** What the engine told of cores, and waits for it. */
class Guard implements LogGuard {
  care: LogGuard['care'] = null
  readonly claimed = new Set<string>()
  readonly bad: string[] = []
  readonly faults: CoreFault[] = []
  readonly waiting = new Set<string>()
  /** Cores of revoked members. */
  readonly revoked = new Set<string>()
  limit: CoreLimit = { bytes: Number.POSITIVE_INFINITY, isKnown: true, isRevoked: false }
  readonly #waiting = new Set<() => void>()

  isWriter(): boolean {
    return true
  }

  isClaimed(coreKey: string): boolean {
    return this.claimed.has(coreKey)
  }

  limitOf(coreKey: string): CoreLimit {
    return { ...this.limit, isRevoked: this.revoked.has(coreKey) }
  }

  onWaiting(coreKey: string): void {
    this.waiting.add(coreKey)
    for (const look of [...this.#waiting]) look()
  }

  onBadBlock(coreKey: string, fault: CoreFault): void {
    this.bad.push(coreKey)
    this.faults.push(fault)
    for (const look of [...this.#waiting]) look()
  }

  /** Resolves when a core is set aside. */
  untilBad(coreKey: string): Promise<true> {
    return this.#until(() => this.bad.includes(coreKey))
  }

  /** Resolves when a core waits for the view to name its owner. */
  untilWaiting(coreKey: string): Promise<true> {
    return this.#until(() => this.waiting.has(coreKey))
  }

  #until(isSo: () => boolean): Promise<true> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!isSo()) return
        this.#waiting.delete(look)
        resolve(true)
      }
      this.#waiting.add(look)
      look()
    })
  }
}

/** Puts each value as a key; "add <core>" makes a writer of a core. */
async function apply(nodes: readonly ApplyNode[], view: Hyperbee, host: ApplyHost): Promise<void> {
  const batch = view.batch({ update: false })
  for (const { value } of nodes) {
    const text = fromUtf8(value)
    if (text.startsWith('add ')) await host.addWriter(b4a.from(text.slice(4), 'hex'), { indexer: false })
    else await batch.put(text, 1)
  }
  await batch.flush()
}

interface Engine {
  readonly store: Corestore
  readonly base: GuardedBase
  readonly guard: Guard
  has(value: string): Promise<boolean>
}

async function open(
  store: Corestore,
  of: { readonly key: Uint8Array; readonly encryptionKey: Uint8Array } | null
): Promise<Engine> {
  const guard = new Guard()
  const base = new GuardedBase(store.namespace('log'), of?.key ?? null, {
    guard,
    handlers: {
      open: (views) =>
        new Hyperbee(views.get('members'), { keyEncoding: 'utf-8', valueEncoding: 'json', extension: false }),
      apply,
      encrypt: true,
      ...(of === null ? {} : { encryptionKey: of.encryptionKey }),
      optimistic: true,
      valueEncoding: 'binary'
    }
  })
  await base.ready()
  return { store, base, guard, has: async (value) => (await base.view.get(value)) !== null }
}

/** The owner of a log, another honest node, and cores of writers that keep to no rule. */
interface Scene {
  readonly owner: Engine
  readonly honest: Engine
  /** A core that becomes one of a writer when `isWriter`. */
  core(name: string, isWriter?: boolean): Promise<Hypercore>
  /** Closes the owner's engine and opens it again, on what it holds. */
  reopen(): Promise<Engine>
  close(): Promise<void>
}

async function scene(t: Assert): Promise<Scene> {
  const dir = await tempDir(t)
  const stores = ['owner', 'honest', 'evil'].map((name) => new Corestore(`${dir}/${name}`))
  const [mine, others, evils] = stores as [Corestore, Corestore, Corestore]
  const owner = await open(mine, null)
  const of = { key: owner.base.key, encryptionKey: owner.base.encryptionKey as Uint8Array }
  const honest = await open(others, of)
  let last = owner
  const streams = [
    [owner.base, evils],
    [honest.base, evils],
    [owner.base, honest.base]
  ].flatMap(([a, b]) => connect(a as Corestore, b as Corestore))
  let closing: Promise<void> | null = null
  const close = (): Promise<void> =>
    (closing ??= (async () => {
      for (const stream of streams) stream.destroy()
      await Promise.all([last.base.close(), honest.base.close()])
      await Promise.all(stores.map((store) => store.close()))
      await fs.rm(dir, { recursive: true })
    })())
  t.teardown(close)
  return {
    owner,
    honest,
    core: async (name, isWriter = true) => {
      const core = evils.get({ name, encryption: { key: of.encryptionKey } })
      await core.ready()
      if (isWriter) await owner.base.append(utf8(`add ${b4a.toString(core.key, 'hex')}`))
      return core
    },
    reopen: async () => {
      await owner.base.close()
      last = await open(mine.session(), of)
      return last
    },
    close
  }
}

function connect(a: Replicates, b: Replicates): NoiseStream[] {
  const [left, right] = [a.replicate(true), b.replicate(false)]
  for (const stream of [left, right]) stream.on('error', () => {})
  left.pipe(right).pipe(left)
  return [left, right]
}

/** Resolves when an engine shows a value. */
function untilShown({ base, has }: Engine, value: string): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => void has(value).then((is) => (is ? resolve() : undefined))
    base.on('update', look)
    look()
  })
}

test('the engine reads what a writer wrote, one block after the other and in batches', async (t) => {
  const { owner, honest, core } = await scene(t)
  const evil = await core('one')
  const head = { key: owner.base.local.key, length: owner.base.local.length }
  const own = (length: number): LogHead => ({ key: evil.key, length })
  await evil.append([
    encode({ heads: [head], batch: 1, value: utf8('one') }),
    encode({ heads: [own(1)], batch: 2, value: utf8('two') }),
    encode({ heads: [own(2)], batch: 1, value: utf8('three') })
  ])
  for (const engine of [owner, honest]) {
    await untilShown(engine, 'three')
    t.alike([await engine.has('one'), await engine.has('two'), engine.guard.bad], [true, true, []])
  }
})

/**
 * Blocks that a writer may not write, by what is wrong with them. `own`: a block of its core; `head`: the owner's last
 * one.
 */
const BAD: Readonly<Record<string, (own: (length: number) => LogHead, head: LogHead) => Uint8Array[]>> = {
  'one block of its own twice': (own) => [good('a'), encode({ heads: [own(1), own(1)], batch: 1, value: null })],
  'a later block of its own': (own) => [encode({ heads: [own(2)], batch: 1, value: null }), good('a')],
  'one block of another writer twice': (_, head) => [encode({ heads: [head, head], batch: 1, value: null })],
  'bytes of nothing': () => [new Uint8Array(64).fill(255)],
  'no bytes': () => [new Uint8Array(0)],
  'a newer version': () => [Uint8Array.of(9, 1, 2, 3)],
  'a batch of none': () => [encode({ heads: [], batch: 0, value: null })],
  'a batch without an end': () => [encode({ heads: [], batch: 2 ** 40, value: null })],
  'a batch that is broken off': (own) => [
    encode({ heads: [], batch: 3, value: null }),
    encode({ heads: [own(1)], batch: 1, value: null })
  ],
  'a foreign block inside a batch': (own, head) => [
    encode({ heads: [], batch: 2, value: null }),
    encode({ heads: [own(1), head], batch: 1, value: null })
  ],
  'a block inside a batch as one before it': (own) => [
    encode({ heads: [], batch: 2, value: utf8('a') }),
    encode({ heads: [own(1)], batch: 1, value: utf8('b') }),
    encode({ heads: [own(2), own(1)], batch: 1, value: utf8('c') })
  ],
  'too many blocks before it': () => [
    encode({ heads: Array.from({ length: 2000 }, (_, at) => anyHead(at)), batch: 1, value: null })
  ],
  'a block that no log has': () => [encode({ heads: [{ ...anyHead(1), length: 2 ** 50 }], batch: 1, value: null })],
  'a block that is too large': () => [encode({ heads: [], batch: 1, value: new Uint8Array(200 * 1024) })]
}

function good(value: string): Uint8Array {
  return encode({ heads: [], batch: 1, value: utf8(value) })
}

function anyHead(seed: number): LogHead {
  return { key: new Uint8Array(32).fill(seed & 255), length: seed + 1 }
}

test('a block that would end the engine sets its core aside at every node, now and at the next start, and the log goes on', async (t) => {
  const { owner, honest, core, reopen } = await scene(t)
  for (const [what, blocks] of Object.entries(BAD)) {
    const evil = await core(what)
    const head = { key: owner.base.local.key, length: owner.base.local.length }
    await evil.append(blocks((length) => ({ key: evil.key, length }), head))
    for (const { guard } of [owner, honest]) t.ok(await guard.untilBad(keyToText(evil.key)), what)
  }
  await owner.base.append(utf8('after'))
  await untilShown(honest, 'after')
  const again = await reopen()
  t.is((await again.base.claims()).size, 0, 'their first blocks are looked at, too')
  await again.base.append(utf8('again'))
  await untilShown(again, 'again')
})

/** Bytes of blocks of a core that a store holds. */
async function heldBytes({ store }: Engine, { key, length }: Hypercore): Promise<number> {
  const core = store.get({ key })
  await core.ready()
  let bytes = 0
  for (let at = 0; at < length; at++)
    bytes += (await core.has(at)) ? ((await core.get(at, { raw: true, wait: false }))?.byteLength ?? 0) : 0
  await core.close()
  return bytes
}

test('of a core over its share every node reads the same blocks and fetches no more, and the log goes on', async (t) => {
  const { owner, honest, core, reopen } = await scene(t)
  const limit = { bytes: 512 * 1024, isKnown: true, isRevoked: false }
  for (const { guard } of [owner, honest]) guard.limit = limit
  const evil = await core('full')
  const block = (name: string, at: number): Uint8Array =>
    encode({ heads: [], batch: 1, value: utf8(`${name}-${at}-${'x'.repeat(16 * 1024)}`) })
  // A part comes while it is within its share; then it grows to a hundred times that at once.
  await evil.append(Array.from({ length: 10 }, (_, at) => block('first', at)))
  await untilShown(owner, fromUtf8(await valueOf(evil, 9)))
  await evil.append(Array.from({ length: 3000 }, (_, at) => block('then', at)))
  for (const { guard } of [owner, honest]) {
    t.ok(await guard.untilBad(keyToText(evil.key)))
    t.alike(
      guard.faults.map(({ code }) => code),
      ['OVERLOADED']
    )
  }
  await owner.base.append(utf8('after'))
  await untilShown(honest, 'after')
  await untilAlike(owner, honest)
  for (const engine of [owner, honest]) {
    const held = await heldBytes(engine, evil)
    t.ok(held > limit.bytes - 2 * 20 * 1024 && held < limit.bytes + 2 * 20 * 1024, `${held} bytes of it are kept`)
  }
  const again = await reopen()
  again.guard.limit = limit
  await again.base.append(utf8('again'))
  await untilShown(again, 'again')
})

async function valueOf(core: Hypercore, at: number): Promise<Uint8Array> {
  const block = c.decode(OplogMessage, (await core.get(at)) as Uint8Array) as {
    readonly node: { readonly value: Uint8Array }
  }
  return block.node.value
}

test('a core over the share of members waits until it is known that it is one of the owner', async (t) => {
  const { owner, core } = await scene(t)
  owner.guard.limit = { bytes: 100 * 1024, isKnown: false, isRevoked: false }
  const mine = await core('restored')
  const blocks = Array.from({ length: 20 }, (_, at) =>
    encode({ heads: [], batch: 1, value: utf8(`${at}-${'x'.repeat(16 * 1024)}`) })
  )
  await mine.append(blocks)
  t.ok(await owner.guard.untilWaiting(keyToText(mine.key)))
  t.alike(owner.guard.bad, [])
  owner.guard.limit = { bytes: Number.POSITIVE_INFINITY, isKnown: true, isRevoked: false }
  owner.base.limitsChanged()
  await untilShown(owner, fromUtf8(await valueOf(mine, 19)))
  t.alike(owner.guard.bad, [])
})

test('only blocks that another block names come from a core of a revoked member, for any hints', async (t) => {
  const { owner, honest, core } = await scene(t)
  const [evil, other] = [await core('revoked'), await core('other')]
  await evil.append([good('before')])
  for (const engine of [owner, honest]) {
    await untilShown(engine, 'before')
    engine.guard.revoked.add(keyToText(evil.key))
    engine.base.limitsChanged()
  }
  await evil.append([good('named'), good('hinted at')])
  for (const { base } of [owner, honest]) base.hintWakeup({ key: evil.key, length: 3 })
  await other.append([encode({ heads: [{ key: evil.key, length: 2 }], batch: 1, value: utf8('names') })])
  for (const engine of [owner, honest]) {
    await untilShown(engine, 'names')
    t.alike([await engine.has('named'), await engine.has('hinted at')], [true, false])
  }
})

test('of a core at which starts ended only what was in the order is read, and the log goes on', async (t) => {
  const { owner, honest, core, reopen } = await scene(t)
  const evil = await core('left out')
  await evil.append([good('before')])
  for (const engine of [owner, honest]) await untilShown(engine, 'before')
  await owner.base.append(utf8('mine'))
  const again = await reopen()
  const asked: string[] = []
  again.guard.care = {
    mayRead: (coreKey) => {
      asked.push(coreKey)
      return Promise.resolve(coreKey !== keyToText(evil.key))
    }
  }
  const live = connect(again.base, honest.base)
  await evil.append([good('poison')])
  await untilShown(honest, 'poison')
  await again.base.append(utf8('after'))
  await untilShown(honest, 'after')
  for (const stream of live) stream.destroy()
  t.alike([await again.has('before'), await again.has('mine'), await again.has('poison')], [true, true, false])
  t.alike(new Set(asked), new Set([keyToText(evil.key)]))
})

test('a core that the log does not name is not fetched, for any hints; one that a member claims is', async (t) => {
  const { owner, core } = await scene(t)
  const [stranger, claimed] = [await core('stranger', false), await core('claimed', false)]
  for (const one of [stranger, claimed]) await one.append([good('a'), good('b')])
  owner.guard.claimed.add(keyToText(claimed.key))
  owner.base.hintWakeup([stranger, claimed].map(({ key }) => ({ key, length: 2 })))
  await owner.store.get({ key: claimed.key }).get(1)
  const kept: string[] = []
  for await (const discoveryKey of owner.store.list()) kept.push(keyToText(discoveryKey))
  t.alike(
    [claimed, stranger].map((one) => kept.includes(keyToText(one.discoveryKey))),
    [true, false]
  )
  await owner.base.append(utf8('after'))
  t.ok(await owner.has('after'))
})

test('no engine ends and honest nodes have one view, for any blocks of writers', { timeout: 120_000 }, async (t) => {
  const key = fc.oneof(fc.constant('own'), fc.constant('owner'), fc.constant('other'), fc.constant('unknown'))
  const length = fc.oneof(fc.nat(5), fc.nat(2 ** 31), fc.maxSafeInteger())
  const block = fc.record({
    heads: fc.array(fc.record({ key, length }), { maxLength: 4 }),
    batch: fc.oneof({ weight: 4, arbitrary: fc.constant(1) }, fc.nat(4), fc.maxSafeInteger().map(Math.abs)),
    value: fc.option(fc.uint8Array({ maxLength: 40 })),
    optimistic: fc.boolean(),
    trace: fc.option(fc.constant({ system: [2 ** 40], encryption: [1], user: [{ view: 9, blocks: [0] }] })),
    flip: fc.option(fc.nat(1000))
  })
  const worlds = fc.array(fc.array(block, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 8 })
  const property = fc.asyncProperty(worlds, async (cores) => {
    const { owner, honest, core, close } = await scene(t)
    const writers: Hypercore[] = []
    for (const at of cores.keys()) writers.push(await core(`writer-${at}`))
    const head = { key: owner.base.local.key, length: owner.base.local.length }
    const keys = { owner: head.key, other: writers.at(-1)?.key ?? head.key, unknown: new Uint8Array(32).fill(7) }
    for (const [at, writer] of writers.entries()) {
      const bytes = (cores[at] ?? []).map(({ heads, flip, ...rest }) => {
        const named = heads.map((one) => ({
          length: Math.abs(one.length),
          key: one.key === 'own' ? writer.key : keys[one.key]
        }))
        return flipped(encode({ ...rest, heads: named }), flip)
      })
      await writer.append(bytes)
    }
    await owner.base.append(utf8('after'))
    await untilShown(honest, 'after')
    await untilAlike(owner, honest)
    await close()
  })
  await holds(t, property, 15)
})
