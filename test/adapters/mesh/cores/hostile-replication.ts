import { createRequire } from 'node:module'
import c from 'compact-encoding'
import type { Codec } from 'compact-encoding'
import fc from 'fast-check'
import type { Channel } from 'protomux'
import type Protomux from 'protomux'
import { arbBytes, arbNumber } from '../hostile-bytes.js'

type Fields = Readonly<Record<string, unknown>>

/** Messages of replication, in the order of their types. */
const TYPES = [
  'sync',
  'request',
  'cancel',
  'data',
  'noData',
  'want',
  'unwant',
  'bitfield',
  'range',
  'extension'
] as const
const { wire } = createRequire(import.meta.url)('hypercore/lib/messages.js') as { wire: Record<string, Codec<unknown>> }

/** A message of replication that its writer made up. */
export interface MadeUp {
  readonly type: number
  readonly fields: Fields
}

/** What is done to the nth message of a type that a real core sends. */
export interface Change {
  readonly type: number
  readonly nth: number
  /** Which of its fields, and what comes in its place. */
  readonly field: number
  readonly number: number
}

/** Numbers of blocks that get past the guard of frames, mostly. */
const arbPlace = (): fc.Arbitrary<number> =>
  fc.oneof({ weight: 3, arbitrary: fc.nat(40) }, fc.nat(2 ** 24), arbNumber())
const arbFork = (): fc.Arbitrary<number> => fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, fc.nat(2), arbNumber())
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(value, { freq: 2 })
const arbHash = (): fc.Arbitrary<Uint8Array> => fc.nat(255).map((byte) => new Uint8Array(32).fill(byte))

function arbNodes(): fc.Arbitrary<Fields[]> {
  return fc.array(fc.record({ index: arbPlace(), size: arbNumber(), hash: arbHash() }), { maxLength: 6 })
}

function arbManifest(): fc.Arbitrary<Fields> {
  const signer = fc.record({ signature: fc.constant('ed25519'), namespace: arbHash(), publicKey: arbHash() })
  return fc.record({
    version: fc.nat(4),
    hash: fc.constant('blake2b'),
    allowPatch: fc.boolean(),
    quorum: arbNumber(),
    signers: fc.array(signer, { maxLength: 3 }),
    prologue: maybe(fc.record({ hash: arbHash(), length: arbNumber() })),
    linked: maybe(fc.array(arbHash(), { maxLength: 3 })),
    userData: maybe(arbBytes())
  })
}

function arbRequest(): fc.Arbitrary<Fields> {
  const span = (): fc.Arbitrary<Fields> => fc.record({ start: arbPlace(), length: arbPlace() })
  const block = (): fc.Arbitrary<Fields> => fc.record({ index: arbPlace(), nodes: arbNumber() })
  return fc.record({
    id: arbNumber(),
    fork: arbFork(),
    block: maybe(block()),
    hash: maybe(block()),
    seek: maybe(fc.record({ bytes: arbNumber(), padding: arbNumber() })),
    upgrade: maybe(span()),
    manifest: fc.boolean(),
    priority: arbNumber()
  })
}

function arbData(): fc.Arbitrary<Fields> {
  const upgrade = fc.record({
    start: arbPlace(),
    length: arbPlace(),
    nodes: arbNodes(),
    additionalNodes: arbNodes(),
    signature: maybe(fc.constantFrom(new Uint8Array(64), new Uint8Array(1)))
  })
  return fc.record({
    request: fc.nat(12),
    fork: arbFork(),
    block: maybe(fc.record({ index: arbPlace(), value: arbBytes(), nodes: arbNodes() })),
    hash: maybe(fc.record({ index: arbPlace(), nodes: arbNodes() })),
    seek: maybe(fc.record({ bytes: arbNumber(), nodes: arbNodes() })),
    upgrade: maybe(upgrade),
    manifest: maybe(arbManifest())
  })
}

/** A message of any type with fields of any size. */
export function arbMadeUp(): fc.Arbitrary<MadeUp> {
  const flags = {
    canUpgrade: fc.boolean(),
    uploading: fc.boolean(),
    downloading: fc.boolean(),
    hasManifest: fc.boolean()
  }
  const span = { start: arbPlace(), length: arbPlace() }
  const fields: Readonly<Record<(typeof TYPES)[number], fc.Arbitrary<Fields>>> = {
    sync: fc.record({
      ...flags,
      allowPush: fc.boolean(),
      fork: arbFork(),
      length: arbPlace(),
      remoteLength: arbPlace()
    }),
    request: arbRequest(),
    cancel: fc.record({ request: arbNumber() }),
    data: arbData(),
    noData: fc.record({ request: fc.nat(12), reason: arbNumber() }),
    want: fc.record({ ...span, any: fc.boolean() }),
    unwant: fc.record({ ...span, any: fc.boolean() }),
    bitfield: fc.record({ start: arbPlace(), bitfield: fc.uint32Array({ maxLength: 1100 }) }),
    range: fc.record({ ...span, drop: fc.boolean() }),
    extension: fc.record({ name: fc.string({ maxLength: 20 }), message: arbBytes() })
  }
  return fc.oneof(...TYPES.map((name, type) => fields[name].map((made) => ({ type, fields: made }))))
}

/** A change of what a real core sends: mostly of its data. */
export function arbChange(): fc.Arbitrary<Change> {
  const type = fc.oneof({ weight: 3, arbitrary: fc.constant(TYPES.indexOf('data')) }, fc.nat(TYPES.length - 1))
  return fc.record({ type, nth: fc.nat(4), field: fc.nat(200), number: arbNumber() })
}

/** The message as bytes; null when it cannot be written. */
export function encoded({ type, fields }: MadeUp): Uint8Array | null {
  const codec = wire[TYPES[type] ?? '']
  if (codec === undefined) return null
  const state = { buffer: null as Uint8Array | null, start: 0, end: 0 }
  try {
    codec.preencode(state, fields)
    state.buffer = new Uint8Array(state.end)
    codec.encode(state, fields)
    return state.buffer
  } catch {
    return null
  }
}

interface Sender {
  send(message: unknown, ...rest: readonly unknown[]): boolean
}

/** The channels of cores on a multiplexer of the test, with changes to what they send. */
export class ChangedCores {
  readonly channels: Channel[] = []
  readonly #changes: readonly Change[]
  readonly #sent = TYPES.map(() => 0)

  /** Make it before any core uses the multiplexer. */
  constructor(mux: Protomux, changes: readonly Change[]) {
    this.#changes = changes
    const create = mux.createChannel.bind(mux)
    mux.createChannel = (options) => {
      const channel = create(options)
      if (channel !== null && options.protocol === 'hypercore/alpha') this.#watch(channel)
      return channel
    }
  }

  #watch(channel: Channel): void {
    this.channels.push(channel)
    for (const [type, message] of channel.messages.entries()) {
      const sender = message as unknown as Sender
      const send = sender.send.bind(sender)
      sender.send = (fields, ...rest) => send(this.#changed(type, fields), ...rest)
    }
  }

  #changed(type: number, fields: unknown): unknown {
    const nth = this.#sent[type] ?? 0
    this.#sent[type] = nth + 1
    const change = this.#changes.find((one) => one.type === type && one.nth === nth)
    if (change === undefined) return fields
    const bytes = encoded({ type, fields: fields as Fields })
    const codec = wire[TYPES[type] ?? '']
    if (bytes === null || codec === undefined) return fields
    // As it is written: what a core sends has more in it.
    const made = changed(c.decode(codec, bytes), change)
    return encoded({ type, fields: made as Fields }) === null ? fields : made
  }
}

/** A copy with one leaf replaced: a number by another, a list by a shorter or longer one, bytes by damaged ones. */
function changed(value: unknown, { field, number }: Change): unknown {
  const leaves = leavesOf(value, [])
  const path = leaves[field % Math.max(1, leaves.length)]
  return path === undefined ? value : replaced(value, path, number)
}

function leavesOf(value: unknown, path: readonly string[]): (readonly string[])[] {
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return [path]
  const inner = Object.entries(value).flatMap(([key, one]) => leavesOf(one, [...path, key]))
  return Array.isArray(value) ? [path, ...inner] : inner
}

function replaced(value: unknown, [key, ...rest]: readonly string[], number: number): unknown {
  if (key !== undefined) {
    const copy = Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) }
    Object.assign(copy, { [key]: replaced(Reflect.get(value as object, key), rest, number) })
    return copy
  }
  if (typeof value === 'number') return number
  if (typeof value === 'boolean') return !value
  if (Array.isArray(value))
    return number % 2 === 0 ? value.slice(1) : [...(value as unknown[]), ...(value as unknown[])]
  if (!(value instanceof Uint8Array) || value.byteLength === 0) return value
  const copy = Uint8Array.from(value)
  copy[number % copy.byteLength] = number & 255
  return number % 5 === 0 && copy.byteLength !== 32 ? copy.subarray(1) : copy
}
