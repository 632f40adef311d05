import test, { type Assert } from 'brittle'
import { Emitter } from '../../../src/kit/events.js'
import { CONFIG_RANGE, NOTICE_RANGE } from '../../../src/domain/gateway/push-records.js'
import { TaskService } from '../../../src/node/gateway/task-service.js'
import { OwnerDirectory } from '../../../src/node/gateway/caller.js'
import type { KnownClients } from '../../../src/ports/gateway.js'
import type { Principal } from '../../../src/ports/node-api.js'
import type { TokenInfo } from '../../../src/ports/token-api.js'
import { agentDefinition, FakeAgent } from '../../support/fake-agents.js'
import { type FakeNode, type FakeNodeOptions, World } from '../../support/fake-node.js'
import { FakeStore } from '../../support/fake-store.js'
import { FakeWebhooks } from '../../support/fake-webhooks.js'
import { createMemoryLedger } from '../../support/memory-ledger.js'
import { madeChanges } from '../../support/ledger-changes.js'

/** Clients of an OAuth server. */
class Clients implements KnownClients {
  readonly ids = new Set(['cli_a', 'cli_b'])
  readonly #gone = new Emitter<void>(() => {})

  has(id: string): boolean {
    return this.ids.has(id)
  }

  onGone(listener: () => void): () => void {
    return this.#gone.on(listener)
  }

  revoke(id: string): void {
    this.ids.delete(id)
    this.#gone.emit()
  }
}

const clientOf = (id: string): Principal => ({
  kind: 'client',
  name: `client ${id}`,
  id: `${id}/operator`,
  tier: 0,
  sandboxId: null,
  scopes: ['read', 'send']
})

async function gatewayOf(
  t: Assert,
  node: FakeNode,
  { webhooks, clients }: { webhooks: FakeWebhooks; clients: Clients }
) {
  const owners = new OwnerDirectory({ tokens: node.core.tokens, log: node.core.deps.log, clients })
  const gateway = new TaskService(node.core, { push: { webhooks, owners } })
  await gateway.start()
  t.teardown(() => gateway.stop())
  return gateway
}

async function scene(t: Assert) {
  const world = new World(t)
  const slow = new FakeAgent(agentDefinition('slow'))
  const [webhooks, clients] = [new FakeWebhooks(), new Clients()]
  const options = { agents: [slow], ledger: createMemoryLedger(), store: new FakeStore() } satisfies FakeNodeOptions
  const node = await world.owner(options)
  const gateway = await gatewayOf(t, node, { webhooks, clients })
  let said = 0
  /** A task whose events are told to a URL with the name of its caller. */
  const begin = async (by: Principal): Promise<string> => {
    const url = `https://${by.id?.replace('/', '.')}.example.com/`
    const message = { messageId: `m${++said}`, role: 'user' as const, parts: [{ text: 'x' }] }
    const push = { target: { url }, version: '1.0' as const }
    await gateway.send(by, { message, agent: 'slow', skill: null, mayAnswer: false, wait: false, push })
    await world.settle()
    return url
  }
  const token = async (ttlMs?: number): Promise<{ readonly info: TokenInfo; readonly principal: Principal }> => {
    const operator: Principal = {
      kind: 'operator',
      name: 'operator',
      tier: 0,
      sandboxId: null,
      scopes: ['read', 'send', 'admin']
    }
    const info = await node.core.tokens.create(ttlMs === undefined ? {} : { ttlMs }, operator)
    const principal = node.core.tokens.admit(info.token)?.principal
    if (principal === undefined) throw new Error('it is good')
    return { info, principal }
  }
  const kept = async (from: FakeNode = node): Promise<number[]> =>
    await Promise.all(
      [CONFIG_RANGE, NOTICE_RANGE].map(async (range) => (await from.ledger.list({ ...range, limit: 100 })).length)
    )
  return { world, slow, webhooks, clients, options, node, gateway, begin, token, kept }
}

test('after a revocation, of token, client or membership, its owner gets no notification, and its webhooks are removed', async (t: Assert) => {
  const { world, slow, webhooks, clients, node, begin, token, kept } = await scene(t)
  const [mine, theirs] = [await token(), await token()]
  const member = await world.member('peer')
  const peer: Principal = { ...clientOf('cli_x'), kind: 'peer', name: 'peer', id: member.id }
  const gone = [await begin(mine.principal), await begin(clientOf('cli_a')), await begin(peer)]
  const stay = [await begin(theirs.principal), await begin(clientOf('cli_b'))]
  const before = gone.map((url) => webhooks.told(url))
  await node.core.tokens.revoke(mine.info.id)
  clients.revoke('cli_a')
  await node.api().call('peers.revoke', { peer: 'peer' })
  await world.settle()
  t.alike(await kept(), [stay.length, 0])
  for (let i = 0; i < 5; i++) {
    slow.finish({ text: 'done' })
    await world.settle()
  }
  t.alike(
    gone.map((url) => webhooks.told(url)),
    before
  )
  for (const url of stay) t.is(webhooks.told(url).at(-1), 'task.completed', url)
})

test('a notification in transit, in retry or resent by hand ends with the token of its owner', async (t: Assert) => {
  const { world, webhooks, node, gateway, begin, token, kept } = await scene(t)
  const [hanging, failing] = [await token(), await token()]
  const url = (of: typeof hanging): string => `https://${of.info.id}.example.com/`
  webhooks.answers.set(url(hanging), () => null)
  webhooks.answers.set(url(failing), () => ({ type: 'failed', reason: 'HTTP 500', retryAfterMs: null }))
  for (const one of [hanging, failing]) await begin(one.principal)
  const tries = webhooks.tries.length
  for (const one of [hanging, failing]) await node.core.tokens.revoke(one.info.id)
  await world.settle()
  t.is(webhooks.tries.find((one) => one.url === url(hanging))?.isAborted, true)
  await world.pass(60_000)
  await gateway.push?.admin.retry(null)
  await world.pass(60_000)
  t.is(webhooks.tries.length, tries)
  t.alike(await kept(), [0, 0])
})

test('an owner revoked while the node was down gets nothing after the start; one whose token only expired still does', async (t: Assert) => {
  const { world, slow, webhooks, clients, options, node, gateway, begin, token, kept } = await scene(t)
  const [mine, short] = [await token(), await token(1000)]
  const gone = [await begin(mine.principal), await begin(clientOf('cli_a'))]
  const stays = await begin(short.principal)
  gateway.stop()
  await node.core.tokens.revoke(mine.info.id)
  await node.core.close()
  const before = gone.map((url) => webhooks.told(url).length)
  clients.ids.delete('cli_a')
  const again = await world.start(node.actor, options)
  await gatewayOf(t, again, { webhooks, clients })
  await world.pass(2000)
  t.absent(again.core.tokens.list().some(({ state }) => state === 'active'))
  t.alike(await kept(again), [1, 0])
  for (let i = 0; i < 3; i++) {
    slow.finish({ text: 'done' })
    await world.pass(1000)
  }
  t.alike(
    gone.map((url) => webhooks.told(url).length),
    before
  )
  t.ok(webhooks.told(stays).at(-1)?.startsWith('task.'))
  t.ok(/completed|failed/.test(webhooks.told(stays).at(-1) ?? ''), 'for any end of its task, it is notified')
})

test('a notification that waits for another try is not sent once its owner is gone, though the ledger refuses to delete it', async (t: Assert) => {
  const { world, webhooks, clients, options, node, gateway, begin, token, kept } = await scene(t)
  const { info, principal } = await token()
  webhooks.answers.set(`https://${info.id}.example.com/`, () => ({
    type: 'failed',
    reason: 'HTTP 500',
    retryAfterMs: null
  }))
  await begin(principal)
  t.ok(((await kept())[1] ?? 0) > 0, 'it waits')
  gateway.stop()
  await node.core.tokens.revoke(info.id)
  await node.core.close()
  const { commit } = options.ledger
  options.ledger.commit = (given) => {
    const changes = madeChanges(given)
    const isDeletion = changes.some(({ key, value }) => value === null && key.startsWith(CONFIG_RANGE.from))
    return isDeletion ? Promise.reject(new Error('no room')) : commit.call(options.ledger, changes)
  }
  const tries = webhooks.tries.length
  const again = await world.start(node.actor, options)
  await gatewayOf(t, again, { webhooks, clients })
  await world.pass(600_000, 1000)
  t.is((await kept(again))[0], 1, 'its webhook is still on record')
  t.is(webhooks.tries.length, tries)
})

test('a ledger that refuses to delete a webhook delays it to the next look; nothing is sent meanwhile', async (t: Assert) => {
  const { world, slow, webhooks, node, begin, token, kept } = await scene(t)
  const { info, principal } = await token()
  const url = await begin(principal)
  const told = webhooks.told(url)
  const { commit } = node.ledger
  let isFull = true
  node.ledger.commit = (given) => {
    const changes = madeChanges(given)
    const isDeletion = changes.some(({ key, value }) => value === null && key.startsWith(CONFIG_RANGE.from))
    return isFull && isDeletion ? Promise.reject(new Error('no room')) : commit.call(node.ledger, changes)
  }
  await node.core.tokens.revoke(info.id)
  slow.finish({ text: 'done' })
  await world.pass(2000)
  t.alike(webhooks.told(url), told)
  t.is((await kept())[0], 1)
  isFull = false
  await world.pass(120_000)
  t.alike([webhooks.told(url), await kept()], [told, [0, 0]])
})
