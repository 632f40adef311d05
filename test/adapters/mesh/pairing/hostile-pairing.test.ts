import { createRequire } from 'node:module'
import test from 'brittle'
import type { Assert } from 'brittle'
import BlindPairing from 'blind-pairing'
import c from 'compact-encoding'
import fc from 'fast-check'
import crypto from 'hypercore-crypto'
import type { KeyPair } from 'hyperswarm'
import { requestJoin } from '../../../../src/adapters/mesh/pairing/join.js'
import { hash, signer, verify } from '../../../../src/adapters/mesh/network/sodium.js'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import { bytesToText, keyToText, type NodeId, utf8 } from '../../../../src/kit/ids.js'
import type { Sign } from '../../../../src/kit/sign.js'
import { encodeJoinData } from '../../../../src/domain/membership/codec.js'
import { sealJoin } from '../../../../src/domain/membership/signing.js'
import { decodeInviteCode } from '../../../../src/domain/membership/invites/invite-code.js'
import { hostileInputs } from '../../../support/hostile-inputs.js'
import { arbBytes, arbNumber, flipped, joined, uint, withLength } from '../hostile-bytes.js'
import { inviteCode } from '../lab.js'
import { type WireEnd, type WireScene, wireScene } from '../wire-scene.js'

/** Messages of one stream. */
const MESSAGES = 6
const PROTOCOL = 'blind-pairing'

interface Request {
  open(publicKey: Uint8Array): void
  confirm(answer: object): void
  deny(answer: object): void
  readonly response: Uint8Array | null
}
const core = createRequire(createRequire(import.meta.url).resolve('blind-pairing'))('blind-pairing-core') as {
  MemberRequest: { from(bytes: Uint8Array): Request }
}

/** A request or an answer: of nothing, of parts of any size, or one that opens, with anything in it. */
interface Draft {
  readonly kind: 'bytes' | 'parts' | 'sealed'
  readonly isKnown: boolean
  readonly first: Uint8Array
  readonly second: Uint8Array
  readonly status: number
  readonly flip: number | null
}

function arbDraft(): fc.Arbitrary<Draft> {
  const part = fc.oneof(
    arbBytes(100),
    fc.constantFrom(0, 16, 31, 32, 33, 64).map((length) => new Uint8Array(length).fill(3))
  )
  return fc.record({
    kind: fc.constantFrom('bytes', 'parts', 'parts', 'sealed', 'sealed'),
    isKnown: fc.boolean(),
    first: part,
    second: part,
    status: arbNumber(),
    flip: fc.option(fc.nat(4096), { freq: 4 })
  })
}

/** Opens the channel of pairing. Its number, as frames have it. */
async function pairingChannel({ mux }: WireEnd, id: Uint8Array): Promise<Uint8Array> {
  const messages = [{ encoding: c.raw }, { encoding: c.raw }]
  const channel = mux.createChannel({ protocol: PROTOCOL, id, messages })
  channel?.open()
  await channel?.fullyOpened()
  return uint(Reflect.get(channel as object, '_localId') as number)
}

test('the node lives, admits nobody, and honest nodes continue, for any pairing messages of a stranger', {
  timeout: 3_600_000
}, async (t) => {
  const scene = await wireScene(t)
  const { log } = scene.node.mesh
  const code = decodeInviteCode(await inviteCode(scene.node), hash)
  if (!code.ok || code.kind !== 'long') throw new Error('it is no long code')
  const { id } = BlindPairing.decodeInvite(code.invite)
  const bytesOf = ({ kind, isKnown, first, second, flip }: Draft): Uint8Array => {
    if (kind === 'bytes') return first
    const request = BlindPairing.createRequest(Buffer.from(code.invite), first) as unknown as { encode(): Uint8Array }
    const parts = joined(isKnown ? id : new Uint8Array(32), withLength(first), withLength(second))
    return flipped(kind === 'sealed' ? request.encode() : parts, flip)
  }
  const before = log.view().members.size
  const survive = async (drafts: readonly Draft[]): Promise<void> => {
    const end = await scene.stranger()
    const number = await pairingChannel(end, log.discoveryKey)
    for (const draft of drafts) end.write(joined(number, uint(0), withLength(bytesOf(draft))))
    await end.end()
  }
  const runs = Math.ceil(hostileInputs(600) / MESSAGES)
  await scene.survives(fc.array(arbDraft(), { minLength: 1, maxLength: MESSAGES }), { runs, survive })
  t.is(log.view().members.size, before)
})

/** Time limit of a newcomer in milliseconds; a test ends it. */
const TIMEOUT_MS = 1

/** A newcomer on the network of the node, which asks to join a mesh of which only the test has the invite. */
class Newcomer {
  readonly discoveryKey: Uint8Array
  readonly publicKey: Uint8Array
  /** What it asks with. */
  readonly request: Uint8Array
  /** Ends of its joining so far. */
  ends = 0
  readonly #swarm: WireScene['node']['swarm']
  readonly #invite: Uint8Array
  readonly #keys: KeyPair = crypto.keyPair()
  #stop: () => void = () => {}
  #joining: Promise<void> | null = null

  constructor(t: Assert, { node }: WireScene) {
    const { invite, publicKey, discoveryKey } = BlindPairing.createInvite(crypto.randomBytes(32), {
      data: utf8('data')
    })
    this.#swarm = node.swarm
    this.#invite = Buffer.from(invite)
    this.publicKey = publicKey
    this.discoveryKey = discoveryKey
    const { inviteId, nodeKey, coreKey, name, sign } = this.#asking()
    const data = encodeJoinData({ v: 1, request: sealJoin({ inviteId, nodeKey, coreKey, name }, sign) })
    this.request = (BlindPairing.createRequest(this.#invite, data) as unknown as { encode(): Uint8Array }).encode()
    t.teardown(() => this.stop(), { order: -1 })
  }

  /** Asks, unless it does so already. */
  ask(): void {
    this.#joining ??= this.#ask()
  }

  async stop(): Promise<void> {
    this.#stop()
    await this.#joining
  }

  #asking(): { inviteId: string; nodeKey: NodeId; coreKey: string; name: string; sign: Sign } {
    const inviteId = bytesToText(BlindPairing.decodeInvite(this.#invite).id)
    const { publicKey, secretKey } = this.#keys
    return {
      inviteId,
      nodeKey: keyToText(publicKey),
      coreKey: keyToText(this.discoveryKey),
      name: 'new',
      sign: signer(secretKey)
    }
  }

  async #ask(): Promise<void> {
    const { nodeKey, coreKey, name, sign } = this.#asking()
    const clock = systemClock()
    const after: typeof clock.after = (ms, run) => {
      if (ms === TIMEOUT_MS) this.#stop = run
      return clock.after(60 * 60_000, run)
    }
    const parts = {
      clocks: () => [],
      swarm: this.#swarm,
      nodeId: nodeKey,
      sign,
      verify,
      hash,
      clock: { ...clock, after },
      telemetry: { log: () => {}, count: () => {} } as never
    }
    const place = { network: 'local', bootstrap: [], localPort: 1, trust: 'guest' } as const
    const code = { kind: 'long', ...place, invite: this.#invite, root: new Uint8Array(16) } as const
    await requestJoin(parts, { code, coreKey, name, timeoutMs: TIMEOUT_MS }).catch(() => {})
    this.ends++
    this.#joining = null
  }
}

test('a newcomer lives, joins nothing, and honest nodes continue, for any answers on the pairing channel', {
  timeout: 3_600_000
}, async (t) => {
  const scene = await wireScene(t)
  const newcomer = new Newcomer(t, scene)
  let opened = 0
  const sealed = ({ first, second, status, isKnown }: Draft): Uint8Array => {
    const request = core.MemberRequest.from(newcomer.request)
    request.open(newcomer.publicKey)
    const key = isKnown ? new Uint8Array(32).fill(status) : newcomer.publicKey
    const additional = { data: first, signature: new Uint8Array(64).fill(status) }
    if (status === 0) request.confirm({ key, encryptionKey: key, additional })
    else request.deny({ status })
    opened++
    return request.response ?? second
  }
  const bytesOf = (draft: Draft): Uint8Array => {
    if (draft.kind === 'bytes') return draft.first
    return flipped(
      draft.kind === 'sealed' ? sealed(draft) : joined(new Uint8Array(32), withLength(draft.first)),
      draft.flip
    )
  }
  const survive = async (drafts: readonly Draft[]): Promise<void> => {
    newcomer.ask()
    const end = await scene.stranger()
    const number = await pairingChannel(end, newcomer.discoveryKey)
    for (const draft of drafts) end.write(joined(number, uint(1), withLength(bytesOf(draft))))
    await end.end()
  }
  const runs = Math.ceil(hostileInputs(600) / MESSAGES)
  await scene.survives(fc.array(arbDraft(), { minLength: 1, maxLength: MESSAGES }), { runs, survive })
  t.ok(opened > 0, `${opened} answers could be opened, ${newcomer.ends} ended the joining`)
})
