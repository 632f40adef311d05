import { createRequire } from 'node:module'
import test from 'brittle'
import type { Assert } from 'brittle'
import c from 'compact-encoding'
import type { Codec } from 'compact-encoding'
import type Hypercore from 'hypercore'
import type { NoiseStream } from 'hyperswarm'
import { seal } from '../../../src/domain/membership/signing.js'
import { keyToText } from '../../../src/kit/ids.js'
import { cardBody } from '../../support/membership.js'
import { inviteCode, type Lab, type LabNode, meshLab, untilView } from './lab.js'

interface Hint {
  readonly key: Uint8Array
  readonly length: number
}

/** The part of the engine's channel of hints that is used here. */
interface Hints {
  addStream(stream: NoiseStream): void
  session(capability: Uint8Array, handlers: object): { announceByStream(stream: NoiseStream, hints: readonly Hint[]): void }
  destroy(): void
}

const require = createRequire(import.meta.url)
const { OplogMessage } = require('autobase/lib/messages.js') as { OplogMessage: Codec<unknown> }
// That of the engine itself, which is no package of ours.
const ProtomuxWakeup = createRequire(require.resolve('autobase'))('protomux-wakeup') as new () => Hints

/** A member without the right to write, whose core and hints about the log are its own. */
class Hostile {
  readonly #streams: NoiseStream[] = []
  readonly #hints = new ProtomuxWakeup()
  readonly #session: ReturnType<Hints['session']>
  #ready: () => void = () => {}

  private constructor(
    readonly node: LabNode,
    readonly core: Hypercore
  ) {
    const { log } = node.mesh
    const ready = (): void => this.#ready()
    this.#session = this.#hints.session(log.key, { onpeeradd: ready })
    log.replicate = (stream) => {
      node.store.replicate(stream)
      this.#hints.addStream(stream)
      this.#streams.push(stream)
    }
  }

  static async join(t: Assert, lab: Lab, by: LabNode): Promise<Hostile> {
    const node = await lab.join('hostile', await inviteCode(by))
    const { log } = node.mesh
    const core = node.store.get({ name: 'hostile', encryption: { key: log.encryptionKey } })
    await core.ready()
    const hostile = new Hostile(node, core)
    t.teardown(() => hostile.#hints.destroy())
    const ready = new Promise<void>((resolve) => {
      hostile.#ready = resolve
    })
    await node.start()
    await node.seen.link(by.id)
    await ready
    return hostile
  }

  hint(hints: readonly Hint[]): void {
    for (const stream of this.#streams) this.#session.announceByStream(stream, hints)
  }

  /** An entry of its own, by the way that honest members take; it comes behind what it sent before. */
  async says(name: string): Promise<void> {
    const { id, mesh } = this.node
    await mesh.log.submit({ kind: 'card', mesh: mesh.meshId, card: seal('card', cardBody(name), { id, sign: mesh.sign }) })
  }
}

async function kept({ store }: LabNode): Promise<string[]> {
  const keys: string[] = []
  for await (const discoveryKey of store.list()) keys.push(keyToText(discoveryKey))
  return keys
}

test('blocks of a member without the right to write are not fetched, so they end no node, now or at the next start', async (t) => {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const hostile = await Hostile.join(t, lab, owner)
  const { core } = hostile
  const twice = { key: core.key, length: 1 }
  const block = (heads: readonly Hint[]): Uint8Array =>
    c.encode(OplogMessage, { version: 2, optimistic: true, node: { heads, batch: 1, value: new Uint8Array(1) } })
  await core.append([block([]), block([twice, twice])])
  hostile.hint([{ key: core.key, length: 2 }])
  await untilView(owner, (view) => view.members.has(hostile.node.id))
  await hostile.says('first')
  await untilView(owner, (view) => view.cards.get(hostile.node.id)?.has('first') === true)
  t.absent((await kept(owner)).includes(keyToText(core.discoveryKey)))
  await owner.close()
  const again = await lab.reopen(owner)
  await again.start()
  await again.seen.link(hostile.node.id)
  hostile.hint([{ key: core.key, length: 2 }])
  await hostile.says('second')
  await untilView(again, (view) => view.cards.get(hostile.node.id)?.has('second') === true)
  t.absent((await kept(again)).includes(keyToText(core.discoveryKey)))
})

test('who hints at a hundred thousand cores costs nobody anything, and who goes on is cut', { timeout: 60_000 }, async (t) => {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const hostile = await Hostile.join(t, lab, owner)
  await untilView(owner, (view) => view.members.has(hostile.node.id))
  const random = (seed: number): Hint => ({ key: Uint8Array.from({ length: 32 }, (_, at) => (seed >> (at % 4)) & 255), length: 2 ** 40 })
  const hints = Array.from({ length: 20_000 }, (_, at) => random(at))
  const before = await kept(owner)
  hostile.hint(hints)
  await hostile.says('first')
  await untilView(owner, (view) => view.cards.get(hostile.node.id)?.has('first') === true)
  t.alike(await kept(owner), before)
  for (let frame = 0; frame < 4; frame++) hostile.hint(hints)
  await owner.seen.until(() => owner.seen.closed.some(({ link }) => link.peer === hostile.node.id))
  t.is(owner.refused.at(-1)?.reason, 'too many hints about the log')
  const reason = 'a test'
  await owner.mesh.log.submit({ kind: 'revocation', mesh: owner.mesh.meshId, nodeKey: hostile.node.id, at: Date.now(), reason })
  t.ok(owner.mesh.log.view().members.get(hostile.node.id)?.revoked)
})
