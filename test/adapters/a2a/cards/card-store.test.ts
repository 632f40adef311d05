import test, { type Assert } from 'brittle'
import { CardStore, type CardStoreDeps, type CardEntry } from '../../../../src/adapters/a2a/cards/card-store.js'
import { CardSigner } from '../../../../src/adapters/a2a/cards/card-signature.js'
import { BASE } from '../../../support/a2a-cards.js'
import { agentDefinition, echo } from '../../../support/fake-agents.js'
import { type FakeNode, World } from '../../../support/fake-node.js'

/** The book of a node, and what it tells of. */
interface Scene {
  readonly book: CardStore
  readonly faults: unknown[]
  /** Signatures that were made. */
  signed(): number
}

function bookOf(t: Assert, world: World, node: FakeNode, given: Partial<CardStoreDeps> = {}): Scene {
  const { log } = node.core.deps
  const faults: unknown[] = []
  let signed = 0
  const sign: FakeNode['actor']['sign'] = (bytes) => {
    signed++
    return node.actor.sign(bytes)
  }
  const book = new CardStore({
    host: { base: BASE, pushNotifications: false, version: '0.1.0' },
    clock: world.clock,
    api: node.api({ kind: 'token', name: 'everybody', tier: 3, scopes: ['read'] }),
    signer: new CardSigner({ sign, nodeId: node.id, keysUrl: `${BASE}/.well-known/jwks.json` }),
    originals: {
      find: (nodeId, agentId) => log.view().cards.get(nodeId)?.get(agentId) ?? null,
      onChange: (listener) => log.onChange(listener)
    },
    onFault: (error) => faults.push(error),
    ...given
  })
  t.teardown(() => book.close())
  return { book, faults, signed: () => signed }
}

/** Lets time pass until the card is what is awaited. */
async function until(world: World, isThere: () => boolean): Promise<void> {
  for (let i = 0; i < 200 && !isThere(); i++) await world.pass(250)
  if (!isThere()) throw new Error('never came true')
}

interface ReadCard {
  readonly supportedInterfaces: readonly { readonly url: string }[]
  readonly name: string
  readonly version: string
  readonly skills: readonly { readonly id: string }[]
  readonly capabilities: { readonly extensions: readonly { readonly params: Record<string, unknown> }[] }
}

function cardOf(entry: CardEntry | null): ReadCard {
  return JSON.parse(entry?.one.body.toString() ?? 'null') as ReadCard
}

test('cards are made once and swapped when an agent changes, comes or goes; the others stay as they are', async (t: Assert) => {
  const world = new World(t)
  const a = await world.owner({ agents: [echo('one'), echo('two')] })
  const { book, faults, signed } = bookOf(t, world, a)
  await book.ready
  t.alike(
    cardOf(book.find(null)).skills.map(({ id }) => id),
    ['one/one.do', 'two/two.do']
  )
  t.is(book.find('operator'), null)
  const [one, two, root] = [book.find('one'), book.find('two'), book.find(null)]
  const before = signed()
  await world.pass(10_000)
  t.is(signed(), before, 'nothing is made while nothing changes')
  a.source.set([echo('one'), echo('two', { version: '2.0.0' })])
  await until(world, () => cardOf(book.find('two')).version === '2.0.0')
  t.is(book.find('one'), one)
  t.not(book.find('two')?.one.etag, two?.one.etag)
  t.ok((book.find('two')?.one.changedAt ?? 0) > (two?.one.changedAt ?? 0))
  t.is(book.find(null)?.one, root?.one, 'the card of the node says the same as before, so its date stays')
  a.source.set([echo('two', { version: '2.0.0' }), echo('three')])
  await until(world, () => book.find('one') === null && book.find('three') !== null)
  t.alike(
    cardOf(book.find(null))
      .skills.map(({ id }) => id)
      .sort(),
    ['three/three.do', 'two/two.do']
  )
  t.alike(faults, [])
})

test('the card at the root is that of the only agent, and lists the skills of all when there are several', async (t: Assert) => {
  const world = new World(t)
  const a = await world.owner({ agents: [echo('text')] })
  const { book } = bookOf(t, world, a)
  await until(world, () => book.find('text') !== null)
  const [root, text] = [cardOf(book.find(null)), cardOf(book.find('text'))]
  t.alike([root.name, root.skills, root.version], [text.name, text.skills, text.version])
  const path = ({ supportedInterfaces: [first] }: typeof root): string => new URL(first?.url ?? '').pathname
  t.alike([path(root), path(text)], ['/a2a', '/agents/text'])
  a.source.set([echo('text'), echo('other')])
  await until(world, () => book.find('other') !== null)
  t.alike(
    cardOf(book.find(null)).skills.map(({ id }) => id),
    ['other/other.do', 'text/text.do']
  )
  a.source.set([])
  await until(world, () => book.find('text') === null)
  t.is(cardOf(book.find(null)).name, 'owner')
})

test('agents of other nodes are listed with the card that their node signed, once the log has it', async (t: Assert) => {
  const world = new World(t)
  const a = await world.owner({ agents: [echo('text'), echo('other')] })
  world.log.isWritable = false
  const b = await world.member('b', { agents: [echo('text')] })
  await world.link(a, b)
  const { book } = bookOf(t, world, a)
  await until(world, () => book.find('text@b') !== null)
  const params = (): Record<string, unknown> => cardOf(book.find('text@b')).capabilities.extensions[0]?.params ?? {}
  t.alike([params()['nodeId'], params()['original']], [b.id, undefined])
  world.log.isWritable = true
  b.core.localCards.publish()
  await until(world, () => params()['original'] !== undefined)
  t.alike(
    params()['original'],
    b.core.localCards.own().find(({ body }) => body.id === 'text')
  )
  world.log.isWritable = false
  b.source.set([echo('text', { version: '2.0.0' })])
  await until(world, () => cardOf(book.find('text@b')).version === '2.0.0')
  t.is(params()['original'], undefined, 'the log has an older one, which says something else')
  t.is(book.find(`text@${b.id}`), book.find('text@b'), 'its key names it, too')
  t.not(book.find('text'), book.find('text@b'))
  t.alike(
    cardOf(book.find(null)).skills.map(({ id }) => id),
    ['other/other.do', 'text/text.do', 'text@b/text.do']
  )
})

test('a node that calls itself by the key of another one does not take the place of its agents', async (t: Assert) => {
  const world = new World(t)
  const a = await world.owner()
  const b = await world.member('b', { agents: [echo('text')] })
  const c = await world.member(b.id, { agents: [echo('text', { version: '6.6.6' })] })
  await world.link(a, b, c)
  const { book } = bookOf(t, world, a)
  await book.ready
  await until(world, () => cardOf(book.find(null)).skills.length === 2)
  for (const name of [`text@${b.id}`, 'text@b']) t.is(cardOf(book.find(name)).version, '1.0.0')
  t.is(cardOf(book.find(`text@${c.id}`)).version, '6.6.6')
})

test('a card that cannot be made leaves the earlier card and all other cards', async (t: Assert) => {
  const world = new World(t)
  const a = await world.owner({ agents: [echo('one'), echo('two')] })
  const real = a.api()
  let isBroken = false
  const api: CardStoreDeps['api'] = {
    watch: (...given) => real.watch(...given),
    call: (name, params, options) =>
      isBroken && name === 'agents.show' && JSON.stringify(params).includes('"one@')
        ? Promise.reject(new Error('broken'))
        : real.call(name, params, options)
  }
  const { book, faults } = bookOf(t, world, a, { api })
  await book.ready
  const one = book.find('one')
  isBroken = true
  a.source.set([echo('one', { version: '2.0.0' }), echo('two', { version: '2.0.0' })])
  await until(world, () => cardOf(book.find('two')).version === '2.0.0')
  t.is(book.find('one'), one)
  t.is(faults.length, 1)
  isBroken = false
  a.source.set([echo('one', { version: '3.0.0' }), echo('two', { version: '2.0.0' })])
  await until(world, () => cardOf(book.find('one')).version === '3.0.0')
})

test('hundreds of agents leave the loop to others while their cards are made', async (t: Assert) => {
  const world = new World(t)
  const names = Array.from({ length: 200 }, (_, at) => `agent-${at}`)
  const a = await world.owner({ agents: names.map((name) => echo(name, agentDefinition(name))) })
  const { book } = bookOf(t, world, a)
  let turns = 0
  let isCounting = true
  const count = (): void => {
    turns++
    if (isCounting) setImmediate(count)
  }
  count()
  await book.ready
  isCounting = false
  t.ok(turns >= 10, `${turns} turns`)
  t.is(cardOf(book.find(null)).skills.length, 200)
})
