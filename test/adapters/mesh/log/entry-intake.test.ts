import test from 'brittle'
import { EntryIntake, type IntakeLog } from '../../../../src/adapters/mesh/log/entry-intake.js'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import { encodeEntry } from '../../../../src/domain/membership/codec.js'
import { fold, reads } from '../../../../src/domain/membership/fold/fold.js'
import { seal } from '../../../../src/domain/membership/signing.js'
import type { MembershipView } from '../../../../src/domain/membership/types.js'
import { ManualClock } from '../../../support/manual-clock.js'
import {
  type Actor,
  actor,
  cardBody,
  founded,
  inviteTerms,
  LARGE,
  LogModel,
  MESH,
  signedCard,
  verify
} from '../../../support/membership.js'

const owner = actor('owner')
const ann = actor('ann')
const eve = actor('eve')

/** An intake over a model of the log. */
class World {
  readonly model: LogModel
  readonly clock = new ManualClock()
  readonly appended: Uint8Array[] = []
  readonly listeners = new Set<(view: MembershipView) => void>()
  readonly claims: { readonly coreKey: string; readonly from: string }[] = []
  readonly handed: { readonly bytes: Uint8Array; readonly from: string }[] = []
  isWritable = true
  /** Does a writer take what is handed on? */
  isHandedOn = true
  quarantined = ''
  readonly intake: EntryIntake

  constructor(model: LogModel = founded()) {
    this.model = model
    const log: IntakeLog = {
      view: () => this.model.view(),
      onChange: (listener) => {
        this.listeners.add(listener)
        return () => this.listeners.delete(listener)
      },
      writable: () => this.isWritable,
      isQuarantined: (nodeId) => nodeId === this.quarantined,
      wouldChange: (entry) => {
        const records = new Map(
          reads(entry).flatMap((key) =>
            this.model.records.has(key) ? [[key, this.model.records.get(key)] as const] : []
          )
        )
        return Promise.resolve(fold(records, entry, { verify, isBootstrapRelay: false, meshId: MESH }).puts.size > 0)
      },
      claim: ({ coreKey }, from) => {
        this.claims.push({ coreKey, from })
        return Promise.resolve()
      },
      append: (bytes) => {
        this.appended.push(bytes)
        return Promise.resolve()
      },
      handOn: (bytes, from) => {
        this.handed.push({ bytes, from })
        return Promise.resolve(this.isHandedOn)
      }
    }
    const telemetry = new MemoryTelemetry({ clock: this.clock, level: null, format: 'text', write: () => {} })
    this.intake = new EntryIntake({ log, clock: this.clock, telemetry })
  }

  changed(): void {
    for (const listener of [...this.listeners]) listener(this.model.view())
  }
}

function card(by: Actor, revision = 1, id = 'tester'): Uint8Array {
  return encodeEntry(seal('entry', { kind: 'card', mesh: MESH, card: signedCard(by, cardBody(id, { revision })) }, by))
}

test('a card of a member is appended, byte for byte, for any node that hands it in', async (t) => {
  const world = new World()
  world.model.join(owner, ann)
  const bytes = card(ann)
  t.is(await world.intake.take(bytes, owner.id), true)
  t.alike(world.appended, [bytes])
})

test('an entry that the log already shows is accepted and not appended again', async (t) => {
  const world = new World()
  world.model.card(owner, cardBody('tester', { revision: 5 }))
  t.is(await world.intake.take(card(owner, 4), ann.id), true)
  t.alike(world.appended, [])
})

test('strangers, forgers, those without the right and revoked members bring nothing in', async (t) => {
  const world = new World()
  world.model.join(owner, ann)
  world.model.join(owner, eve)
  world.model.revoke(owner, eve)
  const forged = {
    ...seal('entry', { kind: 'card', mesh: MESH, card: signedCard(owner, cardBody('x')) } as const, ann),
    by: owner.id
  }
  const junk = [
    card(actor('stranger')),
    encodeEntry(forged),
    encodeEntry(seal('entry', { kind: 'invite', mesh: MESH, invite: inviteTerms('mine') }, ann)),
    encodeEntry(seal('entry', { kind: 'card', mesh: MESH, card: signedCard(owner, cardBody('theirs')) }, ann)),
    new Uint8Array(50)
  ]
  for (const bytes of junk) t.is(await world.intake.take(bytes, ann.id), false)
  await world.intake.take(card(eve, 2), eve.id)
  t.alike(world.appended, [])
})

test('a member that is no writer appends nothing, and hands to writers what the log would accept', async (t) => {
  const world = new World()
  world.isWritable = false
  const entry = card(owner)
  t.is(await world.intake.take(entry, owner.id), true)
  world.isHandedOn = false
  t.is(await world.intake.take(card(owner, 2), owner.id), false, 'no writer took it')
  t.is(await world.intake.take(card(eve), owner.id), false, 'a card of a stranger')
  t.is(await world.intake.take(new Uint8Array(50), owner.id), false, 'no entry')
  t.alike(world.appended, [])
  t.alike(world.handed, [
    { bytes: entry, from: owner.id },
    { bytes: card(owner, 2), from: owner.id }
  ])
})

test('entries relayed for others leave this node half of the quota at the writers', async (t) => {
  const world = new World()
  world.isWritable = false
  for (let revision = 1; revision <= 400; revision++) await world.intake.take(card(owner, revision), owner.id)
  t.is(world.handed.length, 300)
  world.clock.advance(1000)
  t.is(await world.intake.take(card(owner, 401), owner.id), true)
})

test("a newcomer's entry waits for its admission to show, and is appended behind it", async (t) => {
  const world = new World()
  const taking = world.intake.take(card(ann), ann.id)
  t.is(world.listeners.size, 1)
  world.changed()
  world.model.join(owner, ann)
  t.alike(world.appended, [])
  world.changed()
  t.is(await taking, true)
  t.is(world.appended.length, 1)
  t.is(world.listeners.size, 0)
  t.is(world.clock.pending, 0, 'no timer is left')
})

test('an admission that does not come lets the entry go', async (t) => {
  const world = new World()
  const taking = world.intake.take(card(ann), ann.id)
  world.clock.advance(3000)
  t.is(await taking, false)
  t.is(world.listeners.size, 0)
})

test('one peer hands in 600 entries at once and then 10 a second; another is not delayed', async (t) => {
  const world = new World()
  world.model.join(owner, ann)
  const take = (peer: Actor): Promise<boolean> => world.intake.take(card(ann), peer.id)
  const first = await Promise.all(Array.from({ length: 700 }, () => take(ann)))
  t.is(first.filter(Boolean).length, 600)
  t.is(await take(owner), true)
  world.clock.advance(1000)
  const next = await Promise.all(Array.from({ length: 100 }, () => take(ann)))
  t.is(next.filter(Boolean).length, 10)
})

test('one peer hands in 4 MiB at once and then 64 KiB a second; another is not delayed', async (t) => {
  const world = new World()
  world.model.join(owner, ann)
  for (let piece = 0; piece < 64; piece++) await world.intake.take(new Uint8Array(64 * 1024), ann.id)
  t.is(await world.intake.take(card(ann), ann.id), false)
  t.is(await world.intake.take(card(ann), owner.id), true)
  world.clock.advance(1000)
  t.is(await world.intake.take(card(ann), ann.id), true)
  await world.intake.take(new Uint8Array(64 * 1024 - card(ann).byteLength), ann.id)
  t.is(await world.intake.take(card(ann), ann.id), false)
})

test('of a member in quarantine nothing is taken but that it goes on with another core', async (t) => {
  const world = new World()
  world.model.join(owner, ann)
  world.quarantined = ann.id
  t.is(await world.intake.take(card(ann), owner.id), false)
  const claim = encodeEntry(seal('entry', { kind: 'core', mesh: MESH, coreKey: ann.coreKey, serial: 1 } as const, ann))
  t.is(await world.intake.take(claim, ann.id), true)
  t.is(world.appended.length, 1)
})

test('a writer carries 4 MiB of one author, for any relays, and then 64 B a second; revocations and the owner always pass', async (t) => {
  const world = new World()
  const neighbours = ['one', 'two', 'three'].map(actor)
  for (const one of [...neighbours, eve]) world.model.join(owner, one)
  world.model.join(owner, ann, { admin: true })
  const large = (by: Actor, revision: number): Uint8Array =>
    encodeEntry(
      seal(
        'entry',
        { kind: 'card', mesh: MESH, card: signedCard(by, cardBody('large', { revision, capabilities: LARGE })) },
        by
      )
    )
  const from = (at: number): string => neighbours[at % 3]?.id ?? ''
  const taken: boolean[] = []
  for (let revision = 1; revision <= 80; revision++)
    taken.push(await world.intake.take(large(ann, revision), from(revision)))
  const count = taken.filter(Boolean).length
  t.is(count, Math.floor((4 * 1024 * 1024) / large(ann, 1).byteLength))
  const revoked = { kind: 'revocation', mesh: MESH, nodeKey: eve.id, at: 5000, reason: 'lost' } as const
  t.is(await world.intake.take(encodeEntry(seal('entry', revoked, ann)), ann.id), true)
  t.is(await world.intake.take(large(eve, 1), from(0)), true, 'another author is not delayed')
  for (let revision = 1; revision <= 80; revision++)
    t.ok(await world.intake.take(large(owner, revision), from(revision)))
  world.clock.advance((large(ann, 1).byteLength / 64) * 1000)
  t.is(await world.intake.take(large(ann, 100), from(0)), true)
})
