import test, { type Assert } from 'brittle'
import { type ErrorCode, NodeError } from '../../src/kit/errors.js'
import { isKeyText } from '../../src/kit/ids.js'
import type { CallName, Calls, EventInfo, NodeApi, WatchName, Watches } from '../../src/ports/node-api.js'

/** A body of NodeApi under test. */
export interface ApiUnderTest {
  readonly api: NodeApi
  close(): Promise<void>
}

/**
 * The exam of every body of NodeApi. `makeApi` gives the operator's API of a fresh one-node mesh: its owner, nobody
 * else, nothing run yet. It may host agents of its own. Parameters are checked by the body: an in-process one is
 * wrapped in `checkedApi` of the control contract, the server does so itself.
 */
export function nodeApiSuite(name: string, makeApi: (t: Assert) => Promise<ApiUnderTest>): void {
  const check = (title: string, body: (t: Assert, api: NodeApi) => Promise<void>): void => {
    test(`${name}: ${title}`, async (t: Assert) => {
      const { api, close } = await makeApi(t)
      t.teardown(close)
      await body(t, api)
    })
  }
  lookSuite(check)
  unknownSuite(check)
  paramsSuite(check)
  inviteSuite(check)
  tokenSuite(check)
  pushSuite(check)
  contextSuite(check)
  watchSuite(check)
}

type CheckApi = (title: string, body: (t: Assert, api: NodeApi) => Promise<void>) => void

/** The code a call fails with; null when it does not. */
export async function codeOf(run: Promise<unknown>): Promise<ErrorCode | null> {
  try {
    await run
    return null
  } catch (error) {
    if (error instanceof NodeError) return error.code
    throw error
  }
}

/** The first item of a watch, which is then given up. */
export async function firstOf<N extends WatchName>(
  api: NodeApi,
  name: N,
  params: Watches[N]['params']
): Promise<Watches[N]['item'] | null> {
  for await (const item of api.watch(name, params)) return item
  return null
}

function lookSuite(check: CheckApi): void {
  check('info, status and id speak of the same node and mesh', async (t: Assert, api) => {
    const info = await api.call('node.info', {})
    const status = await api.call('node.status', {})
    const id = await api.call('node.id', {})
    t.ok(isKeyText(info.node.id) && isKeyText(info.mesh.id))
    t.alike(status.node, info.node)
    t.alike(id.node, info.node)
    t.is(status.mesh.id, info.mesh.id)
    t.is(id.mesh.id, info.mesh.id)
    t.is(status.pid, info.pid)
    t.is(info.http, null)
  })

  check('status of a lone owner: running, one member, no work', async (t: Assert, api) => {
    const status = await api.call('node.status', {})
    t.is(status.state, 'running')
    t.is(status.node.tier, 'L0')
    t.is(status.mesh.members, 1)
    t.ok(status.uptimeMs >= 0)
    t.alike(status.tasks, { running: 0, queued: 0 })
    t.alike(status.outbox, { pending: 0 })
    t.ok(Array.isArray(status.problems) && Array.isArray(status.agents.ready) && Array.isArray(status.agents.faults))
  })

  check('the owner holds its own certificate with every right', async (t: Assert, api) => {
    const { certificate, mesh, node } = await api.call('node.id', {})
    t.is(certificate.tier, 'L0')
    t.is(certificate.mayInvite, true)
    t.is(certificate.mayWrite, true)
    t.is(certificate.issuer.id, node.id)
    t.is(mesh.owner.id, node.id)
    t.ok(!Number.isNaN(Date.parse(certificate.issuedAt)))
  })

  check('lists of a fresh node are empty, and this node is no peer of itself', async (t: Assert, api) => {
    t.alike((await api.call('peers.list', {})).peers, [])
    t.alike((await api.call('peers.list', { all: true })).peers, [])
    t.alike((await api.call('invite.list', {})).invites, [])
    t.alike((await api.call('swarm.list', {})).swarms, [])
    t.alike((await api.call('tasks.list', {})).tasks, [])
    t.alike((await api.call('tools.list', {})).servers, [])
    t.alike((await api.call('approvals.list', {})).approvals, [])
    const { file, rules, fault } = await api.call('policy.show', {})
    t.alike([file.endsWith('/policy.yaml'), rules, fault], [true, [], null])
  })

  check('tool lists are accepted one server at a time, and of configured servers', async (t: Assert, api) => {
    t.alike((await api.call('tools.refresh', {})).servers, [])
    t.is(await codeOf(api.call('tools.refresh', { accept: 'a'.repeat(64) })), 'USAGE')
    t.is(await codeOf(api.call('tools.refresh', { server: 'nobody' })), 'TOOL_SERVER_NOT_FOUND')
  })

  check('agents are local, carry the node name in their address, and can be shown by it', async (t: Assert, api) => {
    const { node } = await api.call('node.info', {})
    const { agents } = await api.call('agents.list', { origin: 'local' })
    for (const agent of agents) {
      t.is(agent.address, `${agent.id}@${node.name}`)
      t.is(agent.origin, 'local')
      const detail = await api.call('agents.show', { agent: agent.address })
      t.alike(
        detail.capabilities.map((one) => one.id),
        agent.capabilities
      )
    }
    t.alike((await api.call('agents.list', { origin: 'remote' })).agents, [])
  })

  check('metrics and config are plain data', async (t: Assert, api) => {
    const metrics = await api.call('node.metrics', {})
    t.ok(Array.isArray(metrics.counters) && Array.isArray(metrics.timings))
    const { path, config } = await api.call('node.config', {})
    t.ok(path.startsWith('/'))
    t.is(typeof config, 'object')
  })
}

function unknownSuite(check: CheckApi): void {
  check('an unknown peer is PEER_NOT_FOUND in every call', async (t: Assert, api) => {
    const peer = 'nobody-of-this-name'
    t.is(await codeOf(api.call('peers.show', { peer })), 'PEER_NOT_FOUND')
    t.is(await codeOf(api.call('peers.ping', { peer, count: 1 })), 'PEER_NOT_FOUND')
    t.is(await codeOf(api.call('peers.examine', { peer })), 'PEER_NOT_FOUND')
    t.is(await codeOf(api.call('peers.rename', { peer, name: 'new' })), 'PEER_NOT_FOUND')
    t.is(await codeOf(api.call('peers.tier', { peer, tier: 2 })), 'PEER_NOT_FOUND')
    t.is(await codeOf(api.call('peers.address', { peer, address: '10.0.0.5:7422' })), 'PEER_NOT_FOUND')
    t.is(await codeOf(api.call('peers.revoke', { peer })), 'PEER_NOT_FOUND')
  })

  check('an unknown agent is AGENT_NOT_FOUND', async (t: Assert, api) => {
    const agent = 'nobody-of-this-name'
    t.is(await codeOf(api.call('agents.show', { agent })), 'AGENT_NOT_FOUND')
    t.is(await codeOf(api.call('message.send', { agent, text: 'hello' })), 'AGENT_NOT_FOUND')
    t.is(await codeOf(api.call('message.call', { agent, capability: 'text.stats', input: {} })), 'AGENT_NOT_FOUND')
  })

  check('a capability that nobody has is refused at once', async (t: Assert, api) => {
    const capability = 'nobody.has-this'
    const called = await codeOf(api.call('message.call', { agent: null, capability, input: {} }))
    t.ok(called === 'CAPABILITY_NOT_FOUND' || called === 'NO_CAPABLE_AGENT', String(called))
    t.is(await codeOf(api.call('swarm.start', { goal: 'g', capability, strategy: 'each' })), 'NO_CAPABLE_AGENT')
  })

  check('unknown tasks, swarms and invites are each not found', async (t: Assert, api) => {
    const id = 'nothing_of_this_id'
    t.is(await codeOf(api.call('tasks.show', { id })), 'TASK_NOT_FOUND')
    t.is(await codeOf(api.call('tasks.cancel', { id })), 'TASK_NOT_FOUND')
    t.is(await codeOf(api.call('swarm.show', { id })), 'SWARM_NOT_FOUND')
    t.is(await codeOf(api.call('swarm.results', { id })), 'SWARM_NOT_FOUND')
    t.is(await codeOf(api.call('swarm.cancel', { id })), 'SWARM_NOT_FOUND')
    t.is(await codeOf(api.call('swarm.retry', { id })), 'SWARM_NOT_FOUND')
    t.is(await codeOf(firstOf(api, 'swarm.watch', { id })), 'SWARM_NOT_FOUND')
    t.is(await codeOf(api.call('invite.revoke', { id })), 'INVITE_NOT_FOUND')
    t.is(await codeOf(api.call('token.revoke', { id })), 'TOKEN_NOT_FOUND')
    t.is(await codeOf(api.call('approvals.allow', { id })), 'APPROVAL_NOT_FOUND')
    t.is(await codeOf(api.call('approvals.deny', { id, remember: true })), 'APPROVAL_NOT_FOUND')
  })
}

function paramsSuite(check: CheckApi): void {
  check('parameters that do not fit are USAGE', async (t: Assert, api) => {
    const wrong = async <N extends CallName>(call: N, params: unknown): Promise<void> => {
      t.is(await codeOf(api.call(call, params as Calls[N]['params'])), 'USAGE', `${call} ${JSON.stringify(params)}`)
    }
    await wrong('peers.show', {})
    await wrong('peers.show', { peer: '' })
    await wrong('peers.show', { peer: 7 })
    await wrong('peers.show', { peer: 'a', more: 1 })
    await wrong('peers.tier', { peer: 'a', tier: 4 })
    await wrong('peers.address', { peer: 'a', address: '' })
    await wrong('peers.ping', { peer: 'a', count: 0 })
    await wrong('invite.create', { trust: 'mine', uses: -1 })
    await wrong('message.call', { agent: null, capability: 'c' })
    await wrong('message.send', { agent: 'a', text: 'x', justification: 'j'.repeat(2000) })
    await wrong('swarm.start', { goal: 'g', capability: 'c', strategy: 'map', items: [] })
    await wrong('token.create', { tier: 4 })
    await wrong('token.create', { scopes: [] })
    await wrong('token.create', { scopes: ['all'] })
    await wrong('token.create', { ttlMs: 1 })
    await wrong('token.revoke', {})
    await wrong('push.list', { all: true })
    await wrong('push.retry', { id: 7 })
    await wrong('node.info', null)
    await wrong('policy.test', { from: 'L1' })
    await wrong('policy.test', { from: 'L1', to: 'L1', type: 'shout' })
    await wrong('approvals.allow', { id: 'app_1', remember: 'yes' })
    t.is(await codeOf(firstOf(api, 'swarm.watch', {} as { id: string })), 'USAGE')
  })
}

function inviteSuite(check: CheckApi): void {
  check('an invite is listed until it is revoked, and says so afterwards', async (t: Assert, api) => {
    const made = await api.call('invite.create', { trust: 'mine', tier: 2, uses: 3, ttlMs: 60_000 })
    t.ok(made.code.length > 20 && !/\s/.test(made.code))
    t.is(made.tier, 'L2')
    t.is(made.uses, 3)
    const [open] = (await api.call('invite.list', {})).invites
    t.is(open?.id, made.id)
    t.is(open?.state, 'open')
    t.is(open?.used, 0)
    t.is((await api.call('invite.revoke', { id: made.id })).state, 'revoked')
    t.is((await api.call('invite.list', {})).invites[0]?.state, 'revoked')
  })

  check('an invite grants L1 once for ten minutes by default', async (t: Assert, api) => {
    const made = await api.call('invite.create', { trust: 'mine' })
    t.is(made.tier, 'L1')
    t.is(made.uses, 1)
    const leftMs = Date.parse(made.expiresAt) - Date.now()
    t.ok(leftMs > 500_000 && leftMs <= 601_000, made.expiresAt)
    t.is((await api.call('invite.list', {})).invites[0]?.admin, false)
  })
}

function tokenSuite(check: CheckApi): void {
  check('a token is shown once, listed without its secret, and gone when it is revoked', async (t: Assert, api) => {
    const { token, ...made } = await api.call('token.create', {
      name: 'editor',
      tier: 2,
      scopes: ['read'],
      ttlMs: 60_000
    })
    t.ok(/^a2a_[A-Za-z0-9_-]{43}$/.test(token), 'its form')
    t.alike([made.name, made.tier, made.sandboxId, made.scopes, made.state], ['editor', 'L2', null, ['read'], 'active'])
    const { tokens } = await api.call('token.list', {})
    t.alike(tokens, [made])
    t.is((await api.call('token.revoke', { id: made.id })).id, made.id)
    t.alike((await api.call('token.list', {})).tokens, [])
    t.is(await codeOf(api.call('token.revoke', { id: made.id })), 'TOKEN_NOT_FOUND')
  })
}

function pushSuite(check: CheckApi): void {
  check('where no client wants push notifications none waits, and none is tried again', async (t: Assert, api) => {
    t.alike(await api.call('push.list', {}), { configs: [], waiting: [], dead: [], pushedOut: 0, more: false })
    t.alike(await api.call('push.retry', { all: true }), { ids: [] })
    t.is(await codeOf(api.call('push.retry', { id: 'hook_of_nobody.1' })), 'NOTIFICATION_NOT_FOUND')
    t.is(await codeOf(api.call('push.retry', {})), 'USAGE', 'one, or all')
    t.is(await codeOf(api.call('push.retry', { id: 'hook_of_nobody.1', all: true })), 'USAGE', 'not both')
  })
}

function contextSuite(check: CheckApi): void {
  check('where nobody talked there is no context', async (t: Assert, api) => {
    t.alike(await api.call('context.list', {}), { contexts: [] })
    t.is(await codeOf(api.call('context.show', { id: 'ctx_none' })), 'TASK_NOT_FOUND')
  })
}

function watchSuite(check: CheckApi): void {
  check('a watch begins with a snapshot', async (t: Assert, api) => {
    const info = await api.call('node.info', {})
    t.alike((await firstOf(api, 'node.status', {}))?.node, info.node)
    t.alike(await firstOf(api, 'peers.list', {}), { peers: [], problems: [] })
    t.alike(await firstOf(api, 'tasks.list', {}), { tasks: [], more: 0 })
    t.alike((await firstOf(api, 'approvals.list', {}))?.approvals, [])
  })

  check('a message that is followed ends with why it failed', async (t: Assert, api) => {
    const event = await firstOf(api, 'message.send', { agent: 'nobody-of-this-name', text: 'x' })
    t.alike([event?.type, event?.type === 'failed' ? event.error.code : null], ['failed', 'AGENT_NOT_FOUND'])
  })

  check('a watch ends by its signal, without an error', async (t: Assert, api) => {
    const stop = new AbortController()
    let seen = 0
    for await (const item of api.watch('peers.list', {}, { signal: stop.signal })) {
      t.ok(Array.isArray(item.peers))
      seen++
      stop.abort()
    }
    t.is(seen, 1)
  })

  check('a watch whose signal is already aborted gives nothing', async (t: Assert, api) => {
    let seen = 0
    for await (const _ of api.watch('node.status', {}, { signal: AbortSignal.abort() })) seen++
    t.is(seen, 0)
  })

  check('recent events end by themselves', async (t: Assert, api) => {
    await codeOf(api.call('message.send', { agent: 'text', text: 'x' }))
    const events: EventInfo[] = []
    for await (const event of api.watch('node.events', { all: true })) events.push(event)
    t.ok(events.length > 0)
    t.ok(events.every(({ type, at }) => type.length > 0 && !Number.isNaN(Date.parse(at))))
  })

  check('many watches and calls run side by side', async (t: Assert, api) => {
    const snapshots = await Promise.all(Array.from({ length: 20 }, async () => await firstOf(api, 'node.status', {})))
    t.ok(snapshots.every((one) => one?.state === 'running'))
  })
}
