import test from 'brittle'
import type { Assert } from 'brittle'
import type { ApplyHost, ApplyNode } from 'autobase'
import b4a from 'b4a'
import Corestore from 'corestore'
import Hyperbee from 'hyperbee'
import { applyNodes, tryEntry } from '../../../../src/adapters/mesh/log/apply.js'
import { keyFromText, keyToText, utf8 } from '../../../../src/kit/ids.js'
import { canonicalJson } from '../../../../src/kit/json.js'
import { encodeEntry } from '../../../../src/domain/membership/codec.js'
import { seal } from '../../../../src/domain/membership/signing.js'
import type { Entry } from '../../../../src/domain/membership/types.js'
import { buildView } from '../../../../src/domain/membership/view.js'
import { actor, cardBody, founded, keyText, LogModel, MESH, verify } from '../../../support/membership.js'
import { tempDir } from '../../../support/tmp.js'

const owner = actor('owner')
const ann = actor('ann')
const BOOTSTRAP = keyFromText(MESH)

/** A view on disk and a host that writes down what it is told. */
async function world(t: Assert) {
  const store = new Corestore(await tempDir(t))
  t.teardown(() => store.close())
  const view = new Hyperbee(store.get({ name: 'view' }), {
    keyEncoding: 'utf-8',
    valueEncoding: 'json',
    extension: false
  })
  await view.ready()
  const writers: string[] = []
  const host = {
    key: BOOTSTRAP,
    addWriter: (key: Uint8Array, options?: { indexer?: boolean }) => {
      writers.push(`+${keyToText(key)}${options?.indexer === false ? '' : ' as indexer'}`)
      return Promise.resolve()
    },
    removeWriter: (key: Uint8Array) => {
      writers.push(`-${keyToText(key)}`)
      return Promise.resolve()
    },
    removeable: (key: Uint8Array) => !b4a.equals(key, BOOTSTRAP)
  } as unknown as ApplyHost
  const apply = (...values: (Uint8Array | null)[]): Promise<void> =>
    applyNodes({ nodes: values.map((value) => nodeOf(value, BOOTSTRAP)), view, host, verify })
  return { view, writers, host, apply }
}

function nodeOf(value: Uint8Array | null, from: Uint8Array, optimistic = false): ApplyNode {
  return { value, from: { key: from }, length: 1, optimistic, indexed: true, heads: [] } as unknown as ApplyNode
}

async function recordsOf(view: Hyperbee): Promise<[string, unknown][]> {
  const records: [string, unknown][] = []
  for await (const { key, value } of view.createReadStream()) records.push([key, value])
  return records
}

/** A log with a bit of everything. */
function eventful(): LogModel {
  const log = founded()
  log.join(owner, ann, { admin: true })
  log.join(ann, actor('bob'))
  log.card(ann, cardBody('tester'))
  log.uncard(ann, 'tester', 1)
  log.card(actor('bob'), cardBody('worker'))
  log.revoke(owner, ann)
  return log
}

test('entries change the view by the rules, and give the base the writers', async (t) => {
  const log = eventful()
  const { view, writers, apply } = await world(t)
  await apply(...log.entries.map(({ entry }) => encodeEntry(entry)))
  t.is(canonicalJson(await recordsOf(view)), canonicalJson([...log.records].sort(([a], [b]) => (a < b ? -1 : 1))))
  t.alike(writers, [`+${ann.coreKey}`, `-${ann.coreKey}`], 'never as indexers')
})

test('applying the same entries once more, one by one or together, changes nothing', async (t) => {
  const log = eventful()
  const bytes = log.entries.map(({ entry }) => encodeEntry(entry))
  const { view, apply } = await world(t)
  for (const one of bytes) await apply(one)
  const before = canonicalJson(await recordsOf(view))
  await apply(...bytes)
  await apply(...bytes.slice(3))
  t.is(canonicalJson(await recordsOf(view)), before)
})

test('blocks that are no entries are skipped, and those between them count', async (t) => {
  const log = founded()
  log.card(owner, cardBody('tester'))
  const [founding, card] = log.entries.map(({ entry }) => encodeEntry(entry))
  const { view, apply } = await world(t)
  await apply(
    null,
    new Uint8Array(0),
    utf8('{'),
    founding,
    utf8('{"body":null,"by":1,"sig":[]}'),
    new Uint8Array(200_000),
    card,
    utf8('null')
  )
  t.ok(
    buildView(await recordsOf(view))
      .cards.get(owner.id)
      ?.has('tester')
  )
})

test('a founding counts only from the core that the mesh is named after', async (t) => {
  const [founding] = founded().entries.map(({ entry }) => encodeEntry(entry))
  const { view, host } = await world(t)
  await applyNodes({ nodes: [nodeOf(founding, keyFromText(ann.coreKey))], view, host, verify })
  t.alike(await recordsOf(view), [])
})

test('a dry run says whether an entry would change anything, and changes nothing', async (t) => {
  const log = founded()
  const { view, apply } = await world(t)
  await apply(encodeEntry(log.entries[0].entry))
  log.card(owner, cardBody('tester'))
  const card = log.entries[1].entry
  const before = view.version
  t.is((await tryEntry(view, card, { verify, meshId: MESH })).skipped === null, true)
  t.is(
    (await tryEntry(view, card, { verify: () => false, meshId: MESH })).skipped === null,
    false,
    'with a wrong signature'
  )
  t.is(
    (await tryEntry(view, card, { verify, meshId: keyText('another mesh') })).skipped === null,
    false,
    'in another mesh'
  )
  t.is(view.version, before)
  await apply(encodeEntry(card))
  t.is((await tryEntry(view, card, { verify, meshId: MESH })).skipped === null, false, 'a second time')
})

test('of a core that is no writer only its addition by a writing node counts', async (t) => {
  const log = eventful()
  const { view, writers, host, apply } = await world(t)
  await apply(...log.entries.map(({ entry }) => encodeEntry(entry)))
  const before = canonicalJson(await recordsOf(view))
  writers.length = 0
  const [own, other] = [keyText('core/own'), keyText('core/other')]
  const claim: Entry = seal('entry', { kind: 'core', mesh: MESH, coreKey: own, serial: 1 }, owner)
  const removal: Entry = seal(
    'entry',
    { kind: 'invite-revoked', mesh: MESH, inviteId: log.join(owner, actor('eve')).id, at: 1 },
    owner
  )
  const revoked: Entry = seal('entry', { kind: 'core', mesh: MESH, coreKey: other, serial: 1 }, ann)
  const from = (entry: Entry, core: string): Promise<void> =>
    applyNodes({ nodes: [nodeOf(encodeEntry(entry), keyFromText(core), true)], view, host, verify })
  await from(claim, other)
  await from(removal, own)
  await from(revoked, other)
  t.is(canonicalJson(await recordsOf(view)), before)
  t.alike(writers, [])
  await from(claim, own)
  t.alike(writers, [`+${own}`, `-${owner.coreKey}`])
  t.is(buildView(await recordsOf(view)).members.get(owner.id)?.coreKey, own)
})
