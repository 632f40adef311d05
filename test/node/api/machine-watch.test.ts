import test, { type Assert } from 'brittle'
import { utf8 } from '../../../src/kit/ids.js'
import { APPROVALS_PATH } from '../../../src/domain/policy/approval-call.js'
import { MACHINES_MS, onNewElsewhere, REFUSING_MS } from '../../../src/node/api/machine-watch.js'
import type { ApprovalList } from '../../../src/ports/policy-api.js'
import { ASK, callText, firstWaiting } from '../../support/approval-scene.js'
import { echo } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'

const OPERATOR = { kind: 'operator', name: 'operator', tier: 0, sandboxId: null, scopes: ['read', 'admin'] } as const

/** A machine of the owner, another one whose agent asks for approval, and a guest that calls it. */
async function machines(t: Assert) {
  const world = new World(t)
  const desktop = await world.owner()
  const peer = await world.member('peer', { agents: [echo('text')], policy: ASK })
  const asker = await world.member('asker')
  await world.link(desktop, peer, asker)
  const regard = async (by: FakeNode, other: FakeNode): Promise<void> => {
    await by.api().call('peers.trust', { peer: other.id, trust: 'mine' })
    await world.settle()
  }
  return { world, desktop, peer, asker, regard }
}

/** What a machine without any rights of this one answers; counts the questions. */
function refusing(node: FakeNode, code: string): { count: number } {
  const asked = { count: 0 }
  node.core.memberCalls.serveAt(APPROVALS_PATH, async () => {
    asked.count += 1
    return { body: () => utf8(JSON.stringify({ error: { code, message: 'no', retryable: false, next: [] } })) }
  })
  return asked
}

test('a watch of approvals has those of other machines of the owner as they come and go', async (t) => {
  const { world, desktop, peer, asker, regard } = await machines(t)
  await regard(desktop, peer)
  await regard(peer, desktop)
  const gone = new AbortController()
  const seen: ApprovalList[] = []
  const watching = (async () => {
    const watch = desktop.api().watch('approvals.list', { machines: true }, { signal: gone.signal })
    for await (const item of watch) seen.push(item)
  })()
  await world.settle()
  const idsOf = (): unknown =>
    seen.at(-1)?.machines?.map(({ node, approvals }) => [node.id, approvals.map(({ id }) => id)])
  t.alike(idsOf(), [[peer.id, []]])
  void callText(asker)
  await world.settle()
  const id = await firstWaiting(peer)
  await world.pass(MACHINES_MS, 1000)
  t.alike(idsOf(), [[peer.id, [id]]])
  const { length } = seen
  await world.pass(5 * MACHINES_MS, 1000)
  t.is(seen.length, length, 'an unchanged list is not repeated')
  await peer.api().call('approvals.deny', { id })
  await world.pass(MACHINES_MS, 1000)
  t.alike(idsOf(), [[peer.id, []]])
  gone.abort()
  await watching.catch(() => {})
  const plain = desktop.api().watch('approvals.list', {})[Symbol.asyncIterator]()
  t.absent('machines' in ((await plain.next()).value as ApprovalList))
  await plain.return?.(undefined)
})

test('each approval of another machine is new once, also after that machine was away', async (t) => {
  const { world, desktop, peer, asker, regard } = await machines(t)
  await regard(desktop, peer)
  await regard(peer, desktop)
  const ids: string[] = []
  const stop = onNewElsewhere(desktop.core, OPERATOR, (one) => ids.push(`${one.toNode.name} ${one.id}`))
  void callText(asker, { timeoutMs: 600_000 })
  await world.settle()
  const id = await firstWaiting(peer)
  await world.pass(MACHINES_MS, 1000)
  t.alike(ids, [`peer ${id}`])
  world.net.disconnect(desktop.id, peer.id)
  world.net.disconnect(desktop.id, asker.id)
  await world.pass(2 * MACHINES_MS, 1000)
  await world.link(desktop, peer)
  await world.pass(2 * MACHINES_MS, 1000)
  t.alike(ids, [`peer ${id}`])
  stop()
  void callText(asker, { timeoutMs: 600_000 })
  await world.pass(2 * MACHINES_MS, 1000)
  t.is(ids.length, 1, 'none after its end')
})

test('a machine that refuses is asked again after minutes, and a caller without the right asks none', async (t) => {
  for (const code of ['FORBIDDEN', 'SANDBOX_VIOLATION', 'CAPABILITY_NOT_FOUND']) {
    const { world, desktop, peer, regard } = await machines(t)
    await regard(desktop, peer)
    const asked = refusing(peer, code)
    const stop = onNewElsewhere(desktop.core, { ...OPERATOR, scopes: ['read'] }, () => t.fail('nothing waits'))
    await world.pass(3 * MACHINES_MS, 1000)
    t.is(asked.count, 0)
    stop()
    const end = onNewElsewhere(desktop.core, OPERATOR, () => t.fail('nothing waits'))
    await world.pass(10 * MACHINES_MS, 1000)
    t.is(asked.count, 1, code)
    await world.pass(REFUSING_MS, 1000)
    t.is(asked.count, 2)
    world.net.disconnect(desktop.id, peer.id)
    await world.link(desktop, peer)
    await world.pass(2 * MACHINES_MS, 1000)
    t.is(asked.count, 3, 'a machine that comes back may be another build')
    end()
  }
})
