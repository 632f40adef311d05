import { createRequire } from 'node:module'
import test, { type Assert } from 'brittle'
import c from 'compact-encoding'
import type { Codec } from 'compact-encoding'
import { LOG_SHARE_LIMITS } from '../../../../src/domain/membership/log-share.js'
import { seal } from '../../../../src/domain/membership/signing.js'
import type Hypercore from 'hypercore'
import { lengthOf } from '../../../../src/adapters/mesh/log/log-marks.js'
import type { CardBody } from '../../../../src/domain/card/card.js'
import type { EntryBody } from '../../../../src/domain/membership/types.js'
import { keyFromText } from '../../../../src/kit/ids.js'
import { eventually } from '../../../support/agents/eventually.js'
import { cardBody, LARGE } from '../../../support/membership.js'
import { type Lab, type LabNode, meshLab, untilView } from '../lab.js'

const { OplogMessage } = createRequire(import.meta.url)('autobase/lib/messages.js') as { OplogMessage: Codec<unknown> }
const MIB = 1_048_576

function card({ id, mesh }: LabNode, name: string, changes: Partial<CardBody> = {}): EntryBody {
  const body = cardBody(name, changes)
  return { kind: 'card', mesh: mesh.meshId, card: seal('card', body, { id, sign: mesh.sign }) }
}

function untilCard(node: LabNode, of: LabNode, name: string): Promise<void> {
  return untilView(node, (view) => view.cards.get(of.id)?.has(name) === true)
}

/** The core of a member in the store of a node. */
async function coreAt({ store }: LabNode, { mesh }: LabNode): Promise<Hypercore> {
  const core = store.get({ key: keyFromText(mesh.log.coreKey), writable: false })
  await core.ready()
  return core
}

/** Bytes of blocks of a member's core that a node keeps. */
async function heldBytes(node: LabNode, of: LabNode): Promise<number> {
  const core = await coreAt(node, of)
  let bytes = 0
  for (let at = 0; at < core.length; at++)
    if (await core.has(at)) bytes += (await core.get(at, { raw: true, wait: false }))?.byteLength ?? 0
  await core.close()
  return bytes
}

/** Resolves when a node holds the block of a member's core at a place, or no longer. */
async function untilHeld(
  node: LabNode,
  of: LabNode,
  { at, isHeld }: { readonly at: number; readonly isHeld: boolean }
): Promise<void> {
  const core = await coreAt(node, of)
  // Who removes blocks tells nobody.
  await eventually(async () => (await core.has(at)) === isHeld)
  await core.close()
}

/** Appends to the core of a member, past its program. */
async function write({ store, mesh }: LabNode, blocks: readonly Uint8Array[]): Promise<void> {
  const { coreKey, encryptionKey } = mesh.log
  const core = store.get({ key: keyFromText(coreKey), encryption: { key: encryptionKey } })
  await core.ready()
  await core.append(blocks)
  await core.close()
}

function block(heads: readonly { readonly key: Uint8Array; readonly length: number }[] = []): Uint8Array {
  return c.encode(OplogMessage, {
    version: 2,
    optimistic: false,
    node: { heads, batch: 1, value: new Uint8Array(128 * 1024) }
  })
}

/** Resolves when a node tells of a problem with a code. */
function untilProblem(node: LabNode, code: string): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => (node.mesh.problems().some((one) => one.code === code) ? resolve() : undefined)
    node.mesh.log.unreadable.onBad(() => look())
    look()
  })
}

/** The owner and two admins, one of them hostile, with an entry of hers. */
async function threeWriters(
  t: Assert
): Promise<{ readonly lab: Lab } & Record<'owner' | 'admin' | 'hostile', LabNode>> {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const admin = await lab.member('admin', owner, { admin: true })
  const hostile = await lab.member('hostile', owner, { admin: true })
  await hostile.mesh.log.submit(card(hostile, 'before'))
  return { lab, owner, admin, hostile }
}

test('a writer that fills its core without end costs others its share, the log goes on without it, and it can be revoked', {
  timeout: 120_000
}, async (t) => {
  const { lab, owner, admin, hostile } = await threeWriters(t)
  await untilCard(owner, hostile, 'before')
  for (let mib = 0; mib < 48; mib++)
    await write(
      hostile,
      Array.from({ length: 8 }, () => block())
    )
  await Promise.all([owner, admin].map((node) => untilProblem(node, 'OVERLOADED')))
  await admin.mesh.log.submit(card(admin, 'after'))
  await untilCard(owner, admin, 'after')
  for (const node of [owner, admin]) {
    const held = await heldBytes(node, hostile)
    t.ok(held < LOG_SHARE_LIMITS.maxBytes + MIB, `${node.name} keeps ${Math.round(held / MIB)} MiB of 48`)
  }
  const next = `a2a-node peers revoke ${hostile.id}`
  t.is(owner.mesh.problemOf(hostile.id)?.next, next)
  const newcomer = await lab.member('newcomer', owner)
  await untilCard(newcomer, admin, 'after')
  t.ok((await heldBytes(newcomer, hostile)) < LOG_SHARE_LIMITS.maxBytes + MIB)
  await owner.mesh.log.submit({
    kind: 'revocation',
    mesh: owner.mesh.meshId,
    nodeKey: hostile.id,
    at: Date.now(),
    reason: 'a test'
  })
  await untilView(admin, (view) => view.members.get(hostile.id)?.revoked !== null)
  t.alike(owner.mesh.problems(), [])
})

test('a node that wrote its share of the log reports it, and other writers append its entries and the entries it carries', {
  timeout: 120_000
}, async (t) => {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const admin = await lab.member('admin', owner, { admin: true })
  const { log } = admin.mesh
  // Each revision of a card takes the place of the one before, in the view and not in the core.
  for (let revision = 1; !log.own.isFull; revision++)
    await Promise.all(
      Array.from({ length: 32 }, (_, at) =>
        log.submit(card(admin, `large-${at}`, { revision, capabilities: LARGE }), 60_000)
      )
    )
  const core = (await heldBytes(admin, admin)) / MIB
  t.ok(core >= 24 && core < 32, `its own core has ${Math.round(core)} MiB`)
  t.is(admin.mesh.problems()[0]?.code, 'OVERLOADED')
  const before = log.own.length
  await log.submit(card(admin, 'after'))
  await untilCard(owner, admin, 'after')
  t.is(log.own.length, before, 'nothing more is in its own core')
  t.alike(owner.mesh.problems(), [], 'nobody takes it for one that is over its share')
})

test('of a revoked writer only what is in the order of the log stays, also after a restart, and no start takes it for damage', {
  timeout: 120_000
}, async (t) => {
  const { lab, owner, admin, hostile } = await threeWriters(t)
  await Promise.all([owner, admin].map((node) => untilCard(node, hostile, 'before')))
  const ordered = hostile.mesh.log.own.length
  // They name a block that never comes, so nobody can put them into the order.
  const never = { key: owner.mesh.log.key, length: 1_000_000 }
  await write(
    hostile,
    Array.from({ length: 160 }, () => block([never]))
  )
  const last = ordered + 159
  await Promise.all([owner, admin].map((node) => untilHeld(node, hostile, { at: last, isHeld: true })))
  t.ok((await heldBytes(owner, hostile)) > 20 * MIB)
  await owner.mesh.log.submit({
    kind: 'revocation',
    mesh: owner.mesh.meshId,
    nodeKey: hostile.id,
    at: Date.now(),
    reason: 'a test'
  })
  await Promise.all([owner, admin].map((node) => untilHeld(node, hostile, { at: last, isHeld: false })))
  for (const node of [owner, admin])
    t.ok((await heldBytes(node, hostile)) < MIB, `${node.name} has given back what is not in the order`)
  await admin.close()
  const again = await lab.reopen(admin)
  const core = await coreAt(again, hostile)
  for (let at = 0; at < ordered; at++) t.ok(await core.has(at), 'ordered entries stay')
  t.is(
    await lengthOf({ core, isView: false }),
    Number.POSITIVE_INFINITY,
    'and the marks of the log do not miss the rest'
  )
  await core.close()
  await again.start()
  await again.mesh.log.submit(card(again, 'after'))
  await untilCard(owner, again, 'after')
  const newcomer = await lab.member('newcomer', owner)
  await untilCard(newcomer, again, 'after')
  t.ok((await heldBytes(again, hostile)) < MIB)
  // Until it knows of the revocation it takes what the hostile member gives it.
  await eventually(async () => (await heldBytes(newcomer, hostile)) < MIB)
})
