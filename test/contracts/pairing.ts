import test from 'brittle'
import type { Assert } from 'brittle'
import type { Clock } from '../../src/kit/clock.js'
import type { ErrorCode, NodeError } from '../../src/kit/errors.js'
import type { NodeId } from '../../src/kit/ids.js'
import type { MemberLog, Pairing } from '../../src/ports/mesh.js'
import { failsWith } from '../support/fails.js'

/** An admin of a mesh and its way to let others in. */
export interface AdminSubject {
  readonly id: NodeId
  readonly mesh: string
  readonly pairing: Pairing
  readonly log: MemberLog
}

/** How a newcomer tries to come in. */
export interface JoinAttempt {
  /** Tries of the same name are of the same node. */
  readonly name: string
  readonly code: string
  /** How long to look for an admin. Default 20,000. */
  readonly timeoutMs?: number
  readonly clock?: Clock
}

/** A mesh with an admin who is online. */
export interface PairingWorld {
  readonly admin: AdminSubject
  /**
   * Resolves with the newcomer's id when it is in, and leaves it off again. Fails with the error that the person sees.
   */
  join(attempt: JoinAttempt): Promise<NodeId>
  /** The clock that the nodes have. */
  readonly clock: Clock
}

/** What every Pairing keeps, by its long or its short codes. */
export function pairingContract(
  pairing: string,
  kind: 'long' | 'short',
  open: (t: Assert) => Promise<PairingWorld>
): void {
  const name = `${pairing}, ${kind} code`
  const invite = (admin: AdminSubject, options: InviteOptions): Promise<MadeInvite> => makeInvite(admin, kind, options)
  test(`${name}: a code lets as many in as it has uses, with the rights it grants; the next has INVITE_USED`, async (t) => {
    const world = await open(t)
    const { admin } = world
    const { code, terms } = await invite(admin, { tier: 2, uses: 2, sandboxId: 'ci' })
    for (const one of ['first', 'second']) {
      const id = await world.join({ name: one, code })
      const certificate = admin.log.view().members.get(id)?.certificate.body
      t.alike(
        { ...certificate, issuedAt: 0, name: certificate?.name },
        {
          mesh: admin.mesh,
          nodeKey: id,
          name: one,
          maxTier: 2,
          sandboxId: 'ci',
          mayInvite: false,
          mayWrite: false,
          issuedAt: 0,
          serial: 1,
          issuer: admin.id,
          inviteId: terms.id
        }
      )
    }
    await refused(t, world, { name: 'third', code }, 'INVITE_USED')
    t.is(admin.log.view().invites.get(terms.id)?.admitted.length, 2)
    t.is(admin.log.view().members.size, 3)
  })

  test(`${name}: of two who use a code of one use at the same moment one is in, the other has INVITE_USED`, async (t) => {
    const world = await open(t)
    const { code, terms } = await invite(world.admin, { uses: 1 })
    const tries = await Promise.allSettled(['one', 'two'].map((one) => world.join({ name: one, code })))
    t.alike(tries.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    for (const one of tries)
      if (one.status === 'rejected') await failsWith(t, 'INVITE_USED', () => Promise.reject(one.reason as Error))
    t.is(world.admin.log.view().invites.get(terms.id)?.admitted.length, 1)
    t.is(world.admin.log.view().members.size, 2)
  })

  test(`${name}: who is in already is let in again by the same code, and takes no other use`, async (t) => {
    const world = await open(t)
    const { code, terms } = await invite(world.admin, { uses: 1 })
    const id = await world.join({ name: 'newcomer', code })
    t.is(await world.join({ name: 'newcomer', code }), id)
    t.alike(world.admin.log.view().invites.get(terms.id)?.admitted, [id])
  })

  test(`${name}: an expired code is INVITE_EXPIRED, also for one whose clock is behind`, async (t) => {
    const world = await open(t)
    const { code } = await invite(world.admin, { ttlMs: 1 })
    await refused(t, world, { name: 'late', code }, 'INVITE_EXPIRED')
    const behind: Clock = { ...world.clock, now: () => world.clock.now() - 3_600_000 }
    await refused(t, world, { name: 'behind', code, clock: behind }, 'INVITE_EXPIRED')
  })

  test(`${name}: a newcomer whose clock is 20 minutes ahead or behind is let in by a code of 5 minutes`, async (t) => {
    const world = await open(t)
    const { code } = await invite(world.admin, { ttlMs: 300_000, uses: 2 })
    for (const [one, ms] of [
      ['ahead', 1_200_000],
      ['behind', -1_200_000]
    ] as const) {
      const id = await world.join({ name: one, code, clock: { ...world.clock, now: () => world.clock.now() + ms } })
      t.ok(world.admin.log.view().members.has(id), one)
    }
  })

  test(`${name}: the error of an expired code names the skew of a clock, and no skew where clocks agree`, async (t) => {
    const world = await open(t)
    const { code } = await invite(world.admin, { ttlMs: 1 })
    const ahead: Clock = { ...world.clock, now: () => world.clock.now() + 1_200_000 }
    const { message } = await refused(t, world, { name: 'ahead', code, clock: ahead }, 'INVITE_EXPIRED')
    t.ok(message.includes('the clock of this machine is 20 min ahead of that of the node'), message)
    const agreed = await refused(t, world, { name: 'agreed', code }, 'INVITE_EXPIRED')
    t.absent(agreed.message.includes('clock'), agreed.message)
  })

  test(`${name}: a revoked code is INVITE_REVOKED`, async (t) => {
    const world = await open(t)
    const { admin } = world
    const { code, terms } = await invite(admin, {})
    await admin.log.submit({ kind: 'invite-revoked', mesh: admin.mesh, inviteId: terms.id, at: world.clock.now() })
    await refused(t, world, { name: 'newcomer', code }, 'INVITE_REVOKED')
  })

  test(`${name}: a garbled code is INVITE_INVALID, wherever it is broken`, async (t) => {
    const world = await open(t)
    const { code } = await invite(world.admin, {})
    for (const place of [0, 1, Math.floor(code.length / 2), code.length - 1]) {
      const other = code[place] === 'y' ? 'b' : 'y'
      await refused(
        t,
        world,
        { name: 'newcomer', code: code.slice(0, place) + other + code.slice(place + 1) },
        'INVITE_INVALID'
      )
    }
    await refused(t, world, { name: 'newcomer', code: code.slice(0, -5) }, 'INVITE_INVALID')
    await refused(t, world, { name: 'newcomer', code: 'hello' }, 'INVITE_INVALID')
  })

  test(`${name}: a revoked node is REVOKED, for any fresh code`, async (t) => {
    const world = await open(t)
    const { admin } = world
    const id = await world.join({ name: 'newcomer', code: (await invite(admin, {})).code })
    await admin.log.submit({
      kind: 'revocation',
      mesh: admin.mesh,
      nodeKey: id,
      at: world.clock.now(),
      reason: 'a test'
    })
    await refused(t, world, { name: 'newcomer', code: (await invite(admin, {})).code }, 'REVOKED')
  })

  test(`${name}: a refused node is let in by another code`, async (t) => {
    const world = await open(t)
    const { admin } = world
    const first = await invite(admin, { uses: 1 })
    await world.join({ name: 'first', code: first.code })
    await refused(t, world, { name: 'newcomer', code: first.code }, 'INVITE_USED')
    const id = await world.join({ name: 'newcomer', code: (await invite(admin, {})).code })
    t.ok(admin.log.view().members.has(id))
  })

  test(`${name}: with no admin that answers it is NO_ADMIN_ONLINE`, async (t) => {
    const world = await open(t)
    const { code } = await invite(world.admin, {})
    await world.admin.pairing.close()
    const { message } = await refused(t, world, { name: 'newcomer', code, timeoutMs: 1000 }, 'NO_ADMIN_ONLINE')
    t.ok(message.includes('answered within 1 s, so this node did not start'), message)
  })
}

type InviteOptions = Partial<Parameters<Pairing['create']>[0]>

type MadeInvite = Pick<ReturnType<Pairing['create']>, 'terms' | 'code'>

async function makeInvite(
  { pairing, log, mesh }: AdminSubject,
  kind: 'long' | 'short',
  options: InviteOptions
): Promise<MadeInvite> {
  const made = pairing.create({
    tier: 1,
    admin: false,
    sandboxId: null,
    trust: 'guest',
    ttlMs: 600_000,
    uses: 1,
    ...options
  })
  await log.submit({ kind: 'invite', mesh, invite: made.terms })
  await pairing.announced(made.terms.id, 5000)
  return { terms: made.terms, code: kind === 'long' ? made.code : (made.shortCode ?? '') }
}

async function refused(t: Assert, world: PairingWorld, attempt: JoinAttempt, code: ErrorCode): Promise<NodeError> {
  const before = world.admin.log.view().members.size
  const error = await failsWith(t, code, () => world.join(attempt))
  t.is(world.admin.log.view().members.size, before, 'nobody was let in')
  return error
}
