import test, { type Assert } from 'brittle'
import { cardBytes } from '../../../../src/domain/card/schema.js'
import { MAX_CARDS, MAX_CARDS_BYTES, MAX_TOMBSTONES } from '../../../../src/domain/membership/fold/card.js'
import { cardIndexKey } from '../../../../src/domain/membership/keys.js'
import { actor, cardBody, founded } from '../../../support/membership.js'

const owner = actor('owner')
const ann = actor('ann')

test('a member puts its own cards, newer ones in the place of older ones', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { tier: 2 })
  t.is(log.card(ann, cardBody('host', { tier: 2, revision: 3 })).skipped, null)
  t.ok(log.card(ann, cardBody('host', { tier: 2, revision: 3, description: 'x' })).skipped, 'the same revision')
  t.ok(log.card(ann, cardBody('host', { tier: 2, revision: 2 })).skipped, 'an older one')
  t.is(log.card(ann, cardBody('host', { tier: 3, revision: 9 })).skipped, null)
  t.is(log.view().cards.get(ann.id)?.get('host')?.body.revision, 9)
})

test('a card is refused when another signed it, or it claims more than its node has', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { tier: 2, sandboxId: 'ci' })
  const body = cardBody('host', { tier: 2, sandboxId: 'ci' })
  t.ok(log.card(ann, body, owner).skipped, 'signed by another node')
  t.ok(log.card(actor('eve'), body).skipped, 'a stranger')
  t.ok(log.card(ann, { ...body, tier: 1 }).skipped, 'a tier above the certificate')
  t.ok(log.card(ann, cardBody('host', { tier: 2 })).skipped, 'no sandbox')
  t.ok(log.card(ann, { ...body, sandboxId: 'lab' }).skipped, 'another sandbox')
  t.ok(log.card(ann, { ...body, description: 'x'.repeat(9000) }).skipped, 'too long a text')
  t.is(log.view().cards.size, 0)
  t.is(log.card(ann, body).skipped, null)
})

test('a removed card stays away until a newer one comes', (t: Assert) => {
  const log = founded()
  log.card(owner, cardBody('host', { revision: 4 }))
  t.ok(log.uncard(owner, 'host', 3).skipped, 'older than the card')
  t.is(log.uncard(owner, 'host', 4).skipped, null)
  t.is(log.view().cards.get(owner.id), undefined)
  t.ok(log.card(owner, cardBody('host', { revision: 4 })).skipped, 'the old card, appended once more')
  t.is(log.card(owner, cardBody('host', { revision: 5 })).skipped, null)
  t.ok(log.uncard(owner, 'host', 4).skipped, 'the old removal, appended once more')
  t.is(log.view().cards.get(owner.id)?.size, 1)
})

test('a removal that comes before its card keeps it out', (t: Assert) => {
  const log = founded()
  t.is(log.uncard(owner, 'host', 2).skipped, null)
  t.ok(log.card(owner, cardBody('host', { revision: 2 })).skipped)
  t.is(log.view().cards.size, 0)
})

test('a node has at most 1,024 cards, and may put one in the place of a removed one', (t: Assert) => {
  const log = founded()
  for (let i = 0; i < MAX_CARDS; i++) log.card(owner, cardBody(`agent${i}`))
  t.is(log.view().cards.get(owner.id)?.size, MAX_CARDS)
  t.ok(log.card(owner, cardBody('one-more')).skipped)
  t.is(log.card(owner, cardBody('agent0', { revision: 2 })).skipped, null, 'a newer card of one it has')
  log.uncard(owner, 'agent1', 1)
  t.is(log.card(owner, cardBody('one-more')).skipped, null)
  t.is(log.view().cards.get(owner.id)?.size, MAX_CARDS)
})

test('the cards of a node have at most 4 MiB together, after any replacements, removals and repeats', (t: Assert) => {
  const log = founded()
  const card = (id: string, revision: number, length: number): string | null => {
    const capability = {
      id: 'c',
      name: 'c',
      description: '',
      inputSchema: { title: 'x'.repeat(length) },
      outputSchema: true
    }
    return log.card(owner, cardBody(id, { revision, capabilities: [capability] })).skipped
  }
  const held = (): number => {
    const cards = [...(log.view().cards.get(owner.id)?.values() ?? [])]
    const bytes = cards.reduce((sum, { body }) => sum + (cardBytes(body) ?? 0), 0)
    t.is((log.records.get(cardIndexKey(owner.id)) as { bytes: number }).bytes, bytes, 'the record knows them')
    return bytes
  }
  let count = 0
  while (card(`agent${count}`, 1, 60_000) === null) count++
  const full = held()
  t.ok(full <= MAX_CARDS_BYTES && full + 61_000 > MAX_CARDS_BYTES, `${count} cards of ${full} bytes`)
  t.is(card('small', 1, 10), null, 'a fitting one is accepted')
  t.ok(card('small', 2, 60_000), 'also a newer card is refused when it is too large')
  t.is(card('agent0', 2, 10), null, 'a smaller one frees a slot')
  t.ok(card('agent0', 1, 60_000), 'the old one, appended once more')
  t.is(card('small', 2, 50_000), null)
  held()
  log.uncard(owner, 'agent1', 1)
  log.uncard(owner, 'agent1', 1)
  held()
  t.is(card('agent1', 2, 50_000), null, 'so does a removal, once')
  t.ok(card('more', 1, 60_000))
  held()
})

test('a node leaves at most 4,096 tombstones', (t: Assert) => {
  const log = founded()
  log.records.set(cardIndexKey(owner.id), { live: [], tombstones: MAX_TOMBSTONES - 1, bytes: 0 })
  log.card(owner, cardBody('kept'))
  t.is(log.uncard(owner, 'last', 1).skipped, null)
  t.ok(log.uncard(owner, 'kept', 1).skipped)
  t.is(log.card(owner, cardBody('last', { revision: 2 })).skipped, null, 'a card in the place of a tombstone')
  t.is(log.uncard(owner, 'kept', 1).skipped, null)
})

test('a revocation takes the cards of the node away', (t: Assert) => {
  const log = founded()
  log.join(owner, ann)
  log.card(owner, cardBody('host'))
  log.card(ann, cardBody('host'))
  log.card(ann, cardBody('text'))
  log.revoke(owner, ann)
  t.alike([...log.view().cards.keys()], [owner.id])
  t.ok(log.card(ann, cardBody('host', { revision: 2 })).skipped)
})
