import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { hash } from '../../support/membership.js'
import { utf8 } from '../../../src/kit/ids.js'
import { TIERS } from '../../../src/domain/routing/tier.js'
import { NodeError } from '../../../src/kit/errors.js'
import { toBase64 } from '../../../src/kit/bytes.js'
import { TOKENS_MAX, Tokens } from '../../../src/node/access/tokens.js'
import type { Principal } from '../../../src/ports/node-api.js'
import type { TokenScope } from '../../../src/ports/token-api.js'
import { echo } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { FakeStore } from '../../support/fake-store.js'
import { failsWith } from '../../support/fails.js'
import { holds } from '../../support/holds.js'

const HOUR_MS = 3_600_000

async function owner(t: Assert, store = new FakeStore()): Promise<{ world: World; node: FakeNode; tokens: Tokens }> {
  const world = new World(t)
  const node = await world.owner({ store, agents: [echo('text')] })
  return { world, node, tokens: node.core.tokens }
}

function principalOf(tokens: Tokens, token: string): Principal | null {
  return tokens.admit(token)?.principal ?? null
}

test('the home keeps the hash of a token and never the token', async (t) => {
  const store = new FakeStore()
  const { node, tokens } = await owner(t, store)
  const { token } = await node.api().call('token.create', { name: 'editor' })
  const kept = JSON.stringify(await store.read('tokens'))
  t.absent(kept.includes(token) || kept.includes(token.slice(4)))
  t.ok(kept.includes(toBase64(hash(utf8(token)))))
  t.absent(JSON.stringify(tokens.list()).includes(toBase64(hash(utf8(token)))), 'nor does the list disclose the hash')
  t.absent(JSON.stringify(node.audit.all).includes(token))
})

test('a token works after a restart, until it is revoked', async (t) => {
  const store = new FakeStore()
  const { world, node } = await owner(t, store)
  const { token, id } = await node.api().call('token.create', {})
  await node.core.close()
  const again = await world.owner({ store })
  t.is(principalOf(again.core.tokens, token)?.kind, 'token')
  await again.api().call('token.revoke', { id })
  t.is(principalOf(again.core.tokens, token), null)
  await again.core.close()
  t.is(principalOf((await world.owner({ store })).core.tokens, token), null)
})

test('without terms a token reads and sends, has L1 at most and ends after 90 days; each term is asked for on its own', async (t) => {
  const { node, world } = await owner(t)
  const api = node.api()
  const terms = async (params: Parameters<typeof api.call<'token.create'>>[1]): Promise<unknown> => {
    const { tier, sandboxId, scopes, expiresAt } = await api.call('token.create', params)
    return [
      tier,
      sandboxId,
      scopes.join(),
      expiresAt === null ? null : (Date.parse(expiresAt) - world.clock.now()) / HOUR_MS
    ]
  }
  const days90 = 90 * 24
  t.alike(await terms({}), ['L1', null, 'read,send', days90])
  t.alike(await terms({ tier: 0 }), ['L0', null, 'read,send', days90])
  t.alike(await terms({ tier: 2 }), ['L2', null, 'read,send', days90])
  t.alike(await terms({ sandboxId: 'ci' }), ['L1', 'ci', 'read,send', days90])
  t.alike(await terms({ scopes: ['read', 'send', 'admin'] }), ['L1', null, 'read,send,admin', days90])
  t.alike(await terms({ tier: 3, scopes: ['admin', 'read'], ttlMs: HOUR_MS }), ['L3', null, 'read,admin', 1])
  t.alike(await terms({ ttlMs: null }), ['L1', null, 'read,send', null])
})

test('nobody makes a token above itself, and a token makes none', async (t) => {
  const { node, tokens } = await owner(t)
  await failsWith(t, 'USAGE', () => node.api().call('token.create', { sandboxId: 'no such/id' }))
  await failsWith(t, 'FORBIDDEN', () => node.api({ kind: 'page', tier: 2 }).call('token.create', { tier: 1 }))
  await failsWith(t, 'FORBIDDEN', () => node.api({ kind: 'page', scopes: ['read', 'send'] }).call('token.create', {}))
  await failsWith(t, 'SANDBOX_VIOLATION', () => node.api({ kind: 'page', sandboxId: 'ci' }).call('token.create', {}))
  await failsWith(t, 'FORBIDDEN', () => tokens.create({ sandboxId: 'other' }, { ...page(), sandboxId: 'ci' }))
  t.is((await tokens.create({}, { ...page(), sandboxId: 'ci' })).sandboxId, 'ci')
  t.alike((await tokens.create({}, { ...page(), scopes: ['read'] })).scopes, ['read'])
  await failsWith(t, 'FORBIDDEN', () => tokens.create({ scopes: ['read', 'send'] }, { ...page(), scopes: ['read'] }))
  for (const kind of ['token', 'mcp', 'peer'] as const)
    await failsWith(t, 'FORBIDDEN', () => node.api({ kind }).call('token.create', {}))
})

function codeOfRefusal(error: unknown): string {
  if (error instanceof NodeError) return error.code
  throw error
}

function page(): Principal {
  return { kind: 'page', name: 'page', tier: 0, sandboxId: null, scopes: ['read', 'send', 'admin'] }
}

test('a token is never more powerful than the certificate that is in force when it is used', async (t) => {
  const world = new World(t)
  const boss = await world.owner()
  const member = await world.member('m', { terms: { tier: 1 } })
  await world.link(boss, member)
  const { token, tier } = await member.api().call('token.create', {})
  t.is(tier, 'L1')
  t.is(principalOf(member.core.tokens, token)?.tier, 1)
  await boss.api().call('peers.tier', { peer: 'm', tier: 3 })
  await world.settle()
  t.is(principalOf(member.core.tokens, token)?.tier, 3)
  t.is(member.core.tokens.list()[0]?.tier, 'L3')
  await boss.api().call('peers.tier', { peer: 'm', tier: 0 })
  await world.settle()
  t.is(principalOf(member.core.tokens, token)?.tier, 1, 'it does not grow with the node either')
})

test('revoking and expiring end what is open under a token at once', async (t) => {
  const { world, node, tokens } = await owner(t)
  const lasting = await node.api().call('token.create', { ttlMs: null })
  const brief = await node.api().call('token.create', { ttlMs: HOUR_MS })
  const ended: string[] = []
  const hold = (token: string, name: string): (() => void) | undefined =>
    tokens.admit(token)?.onEnd(() => ended.push(name))
  hold(lasting.token, 'lasting')
  hold(lasting.token, 'released')?.()
  hold(brief.token, 'brief')
  const late = tokens.admit(lasting.token)
  await world.pass(HOUR_MS - 1000, 60_000)
  t.ok(tokens.admit(brief.token), 'a second before its end it works')
  t.alike(ended, [])
  await world.pass(1000)
  t.alike(ended, ['brief'])
  t.is(tokens.admit(brief.token), null)
  t.is(tokens.list().find(({ id }) => id === brief.id)?.state, 'expired')
  await node.api().call('token.revoke', { id: lasting.id })
  t.alike(ended, ['brief', 'lasting'])
  late?.onEnd(() => ended.push('late'))
  t.is(ended.at(-1), 'late', 'a late follower gets the end at once')
})

test('a token that cannot be written is none; one that cannot be unwritten is revoked all the same', async (t) => {
  const store = new FakeStore()
  const { node, tokens } = await owner(t, store)
  const { token, id } = await node.api().call('token.create', {})
  let ended = false
  tokens.admit(token)?.onEnd(() => (ended = true))
  store.write = () => Promise.reject(new NodeError('DISK_FULL', 'no room'))
  await failsWith(t, 'DISK_FULL', () => node.api().call('token.create', {}))
  t.is(tokens.list().length, 1)
  await failsWith(t, 'DISK_FULL', () => node.api().call('token.revoke', { id }))
  t.ok(ended)
  t.is(tokens.admit(token), null)
})

test('a token whose removal was not written stays removed: a repeated request writes it, and so does the end of the node', async (t) => {
  for (const way of ['again', 'close'] as const) {
    const store = new FakeStore()
    const { world, node, tokens } = await owner(t, store)
    const { token, id } = await node.api().call('token.create', {})
    store.fault = new NodeError('DISK_FULL', 'no room')
    await failsWith(t, 'DISK_FULL', () => tokens.revoke(id))
    t.alike(tokens.list(), [])
    store.fault = null
    if (way === 'again') t.is((await tokens.revoke(id)).id, id)
    if (way === 'again') await failsWith(t, 'TOKEN_NOT_FOUND', () => tokens.revoke(id))
    if (way === 'close') await node.core.close()
    const kept = await store.read<{ tokens: readonly unknown[] }>('tokens')
    t.alike(kept?.tokens, [], way)
    t.is(node.audit.all.filter(({ code }) => code === 'token-revoked').length, 1, 'on record once')
    if (way === 'close') t.is(principalOf((await world.owner({ store })).core.tokens, token), null)
  }
})

test('an id may be shortened, an ambiguous or too short one is refused', async (t) => {
  const { node } = await owner(t)
  let last = 0
  const tokens = new Tokens({ ...node.core.deps, ids: { next: (prefix) => `${prefix}_same${++last}` } })
  const one = await tokens.create({ name: 'one' }, page())
  for (const text of ['tok_', 'tok_sam', '', 'same1']) await failsWith(t, 'TOKEN_NOT_FOUND', () => tokens.revoke(text))
  await tokens.create({ name: 'two' }, page())
  await failsWith(t, 'AMBIGUOUS_NAME', () => tokens.revoke('tok_same'))
  await tokens.revoke(one.id)
  t.is((await tokens.revoke('tok_same')).name, 'two')
})

test('the last use of a token is reported exactly, written once in ten minutes, and survives the end of the node', async (t) => {
  const store = new FakeStore()
  const { world, node, tokens } = await owner(t, store)
  const { token } = await node.api().call('token.create', {})
  t.is(tokens.list()[0]?.lastUsedAt, null)
  let writes = 0
  const write = store.write.bind(store)
  store.write = async (name, value) => {
    if (name === 'tokens') writes++
    await write(name, value)
  }
  for (let i = 0; i < 100; i++) tokens.admit(token)
  t.is(writes, 1)
  t.is(tokens.list()[0]?.lastUsedAt, tokens.list()[0]?.createdAt, 'just now, and not before it was made')
  await world.pass(HOUR_MS, 60_000)
  tokens.admit(token)
  t.is(writes, 2)
  const used = tokens.list()[0]?.lastUsedAt
  t.is(Date.parse(used ?? ''), node.core.deps.clock.now())
  await node.core.close()
  t.is((await world.owner({ store })).core.tokens.list()[0]?.lastUsedAt, used)
})

test('the number of tokens is bounded; expired ones free their places', async (t) => {
  const { world, node, tokens } = await owner(t)
  await node.api().call('token.create', { ttlMs: 1000 })
  for (let i = 1; i < TOKENS_MAX; i++) await tokens.create({}, page())
  await failsWith(t, 'OVERLOADED', () => node.api().call('token.create', {}))
  await world.pass(1000)
  t.ok((await node.api().call('token.create', {})).token)
  t.is(tokens.list().length, TOKENS_MAX)
})

test('tokens that are made and revoked are on record, each by its id', async (t) => {
  const { node } = await owner(t)
  const { id } = await node.api().call('token.create', { name: 'editor', tier: 2, sandboxId: 'ci' })
  await node.api().call('token.revoke', { id })
  t.alike(node.audit.of('control'), [
    { kind: 'control', code: 'token-created', rule: id, reason: 'editor: L2 in sandbox ci, read, send' },
    { kind: 'control', code: 'token-revoked', rule: id, reason: 'editor' }
  ])
})

test('only a token of this node is accepted as one, after any change of its text', async (t) => {
  const { node, tokens } = await owner(t)
  const { token } = await node.api().call('token.create', {})
  const changed = fc
    .tuple(fc.nat({ max: token.length - 1 }), fc.string({ minLength: 0, maxLength: 2, unit: 'binary' }))
    .map(([at, text]) => {
      return `${token.slice(0, at)}${text}${token.slice(at + 1)}`
    })
  const property = fc.property(
    fc.oneof(changed, fc.string(), fc.constantFrom('', 'a2a_', `${token} `, token.slice(4))),
    (text) => {
      return (tokens.admit(text) !== null) === (text === token)
    }
  )
  await holds(t, property, 500)
})

test('a token has no more tier, sandbox or scopes than its maker, for any request', async (t) => {
  const { node, tokens } = await owner(t)
  const scopes = fc.uniqueArray(fc.constantFrom<TokenScope>('read', 'send', 'admin'), { minLength: 1 })
  const tier = fc.constantFrom(...TIERS)
  const sandbox = fc.constantFrom('a', 'b')
  const request = fc.record({ tier, sandboxId: sandbox, scopes }, { requiredKeys: [], noNullPrototype: true })
  const by = fc.record({ tier, sandboxId: fc.option(sandbox), scopes })
  const property = fc.asyncProperty(request, by, async (asked, maker) => {
    const made = await tokens.create(asked, { ...page(), ...maker }).catch(codeOfRefusal)
    if (typeof made === 'string') return made === 'FORBIDDEN'
    const grant = principalOf(tokens, made.token)
    await tokens.revoke(made.id)
    if (grant === null) return false
    const isWithin = maker.sandboxId === null || grant.sandboxId === maker.sandboxId
    return grant.tier >= maker.tier && isWithin && grant.scopes.every((one) => maker.scopes.includes(one))
  })
  await holds(t, property, 200)
  t.alike(node.core.tokens.list(), [])
})
