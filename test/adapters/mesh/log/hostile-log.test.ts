import test from 'brittle'
import type { Assert } from 'brittle'
import type Hypercore from 'hypercore'
import { seal } from '../../../../src/domain/membership/signing.js'
import { keyToText } from '../../../../src/kit/ids.js'
import { badBlocks, type Hint, LogCores } from '../../../support/hostile/log-cores.js'
import { cardBody } from '../../../support/membership.js'
import { inviteCode, type Lab, type LabNode, meshLab, untilView } from '../lab.js'

/** A member without the right to write, whose core and hints about the log are its own. */
class Hostile {
  private constructor(
    readonly node: LabNode,
    readonly cores: LogCores,
    readonly core: Hypercore
  ) {}

  static async join(t: Assert, lab: Lab, by: LabNode): Promise<Hostile> {
    const node = await lab.join('hostile', await inviteCode(by))
    const cores = new LogCores(node)
    t.teardown(() => cores.close())
    const core = await cores.core('one')
    await node.start()
    await node.seen.link(by.id)
    await cores.ready()
    return new Hostile(node, cores, core)
  }

  /** An entry of its own, by the way that honest members take; it comes behind what it sent before. */
  async says(name: string): Promise<void> {
    const { id, mesh } = this.node
    await mesh.log.submit({
      kind: 'card',
      mesh: mesh.meshId,
      card: seal('card', cardBody(name), { id, sign: mesh.sign })
    })
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
  await core.append(badBlocks(core))
  hostile.cores.hint([{ key: core.key, length: 2 }])
  await untilView(owner, (view) => view.members.has(hostile.node.id))
  await hostile.says('first')
  await untilView(owner, (view) => view.cards.get(hostile.node.id)?.has('first') === true)
  t.absent((await kept(owner)).includes(keyToText(core.discoveryKey)))
  await owner.close()
  const again = await lab.reopen(owner)
  await again.start()
  await again.seen.link(hostile.node.id)
  hostile.cores.hint([{ key: core.key, length: 2 }])
  await hostile.says('second')
  await untilView(again, (view) => view.cards.get(hostile.node.id)?.has('second') === true)
  t.absent((await kept(again)).includes(keyToText(core.discoveryKey)))
})

test('a member with hints at a hundred thousand cores costs nobody anything, and one that continues is cut', {
  timeout: 60_000
}, async (t) => {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const hostile = await Hostile.join(t, lab, owner)
  await untilView(owner, (view) => view.members.has(hostile.node.id))
  const random = (seed: number): Hint => ({
    key: Uint8Array.from({ length: 32 }, (_, at) => (seed >> (at % 4)) & 255),
    length: 2 ** 40
  })
  const hints = Array.from({ length: 20_000 }, (_, at) => random(at))
  const before = await kept(owner)
  hostile.cores.hint(hints)
  await hostile.says('first')
  await untilView(owner, (view) => view.cards.get(hostile.node.id)?.has('first') === true)
  t.alike(await kept(owner), before)
  for (let frame = 0; frame < 4; frame++) hostile.cores.hint(hints)
  await owner.seen.until(() => owner.seen.closed.some(({ link }) => link.peer === hostile.node.id))
  t.is(owner.refused.at(-1)?.reason, 'too many hints about the log')
  const reason = 'a test'
  await owner.mesh.log.submit({
    kind: 'revocation',
    mesh: owner.mesh.meshId,
    nodeKey: hostile.node.id,
    at: Date.now(),
    reason
  })
  t.ok(owner.mesh.log.view().members.get(hostile.node.id)?.revoked)
})
