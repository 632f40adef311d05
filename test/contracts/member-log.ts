import test from 'brittle'
import type { Assert } from 'brittle'
import type { NodeId } from '../../src/kit/ids.js'
import type { Sign } from '../../src/kit/sign.js'
import { seal } from '../../src/domain/membership/signing.js'
import type { EntryBody, MembershipView } from '../../src/domain/membership/types.js'
import type { MemberLog } from '../../src/ports/mesh.js'
import { eventually } from '../support/agents/eventually.js'
import { cardBody } from '../support/membership.js'
import { failsWith } from '../support/fails.js'

/** One node's log, connected to the others' unless cut off. */
export interface LogSubject {
  readonly id: NodeId
  readonly sign: Sign
  readonly log: MemberLog
  /** Loses every link and finds none until `reopen`. */
  cutOff(): Promise<void>
  /** Closes the log and opens it again, connected. */
  reopen(): Promise<LogSubject>
  close(): Promise<void>
}

/**
 * Three members of a mesh, each seeing all three in its view: the owner and the admin may write, the member may not.
 */
export interface LogWorld {
  readonly mesh: string
  readonly owner: LogSubject
  readonly admin: LogSubject
  readonly member: LogSubject
}

/** What every MemberLog keeps. */
export function memberLogContract(name: string, open: (t: Assert) => Promise<LogWorld>): void {
  test(`${name}: entries of owner, admin and member are applied on every node`, async (t) => {
    const world = await open(t)
    t.ok(world.owner.log.writable())
    t.absent(world.member.log.writable(), 'the member has no right to write')
    for (const who of everybody(world)) await who.log.submit(card(world, who, 1))
    for (const who of everybody(world)) {
      await untilView(who.log, (view) => everybody(world).every(({ id }) => view.cards.get(id)?.has('tester') === true))
      t.pass('all three cards are in its view')
    }
  })

  test(`${name}: submit resolves when the own view shows the entry, and its listeners saw it`, async (t) => {
    const world = await open(t)
    for (const who of everybody(world)) {
      let seen = 0
      const stop = who.log.onChange((view) => {
        if (view.cards.get(who.id)?.has('tester') === true) seen++
      })
      await who.log.submit(card(world, who, 1))
      t.is(who.log.view().cards.get(who.id)?.get('tester')?.body.revision, 1)
      t.ok(seen >= 1)
      stop()
      const before = seen
      await who.log.submit(card(world, who, 2))
      t.is(seen, before, 'a stopped listener gets nothing')
    }
  })

  test(`${name}: a submission without a change resolves at once and adds nothing`, async (t) => {
    const { owner, ...world } = await open(t)
    await owner.log.submit(card(world, owner, 2))
    const length = owner.log.length()
    await owner.log.submit(card(world, owner, 1))
    t.is(owner.log.length(), length)
    t.is(owner.log.view().cards.get(owner.id)?.get('tester')?.body.revision, 2)
  })

  test(`${name}: without a writer in reach a member's entry times out, the owner's does not`, async (t) => {
    const world = await open(t)
    await world.member.cutOff()
    await failsWith(t, 'TIMEOUT', () => world.member.log.submit(card(world, world.member, 1), 300))
    t.absent(world.member.log.view().cards.has(world.member.id))
    await world.owner.cutOff()
    await t.execution(world.owner.log.submit(card(world, world.owner, 1), 10_000))
  })

  test(`${name}: the view is read again after a restart, and entries that came meanwhile follow`, async (t) => {
    const world = await open(t)
    await world.member.log.submit(card(world, world.member, 3))
    await world.member.close()
    await world.owner.log.submit(card(world, world.owner, 1))
    const again = await world.member.reopen()
    t.is(again.log.view().cards.get(again.id)?.get('tester')?.body.revision, 3)
    await untilView(again.log, (view) => view.cards.get(world.owner.id)?.has('tester') === true)
    t.is(again.log.view().members.size, 3)
  })

  test(`${name}: nodes that come and go add nothing to the log`, async (t) => {
    const world = await open(t)
    await eventually(() => new Set(everybody(world).map((who) => who.log.length())).size === 1)
    const settled = everybody(world).map((who) => who.log.length())
    await world.member.close()
    const again = await world.member.reopen()
    t.alike([world.owner.log.length(), world.admin.log.length(), again.log.length()], settled)
  })

  test(`${name}: a closed log submits nothing`, async (t) => {
    const world = await open(t)
    await world.owner.close()
    await failsWith(t, 'INTERNAL', () => world.owner.log.submit(card(world, world.owner, 9)))
  })
}

function everybody({ owner, admin, member }: LogWorld): readonly LogSubject[] {
  return [owner, admin, member]
}

/** An entry with a card of the node's agent `tester`. */
function card({ mesh }: { readonly mesh: string }, { id, sign }: LogSubject, revision: number): EntryBody {
  return { kind: 'card', mesh, card: seal('card', cardBody('tester', { revision }), { id, sign }) }
}

function untilView(log: MemberLog, fits: (view: MembershipView) => boolean): Promise<void> {
  return new Promise((resolve) => {
    let stop: () => void = () => {}
    const look = (view: MembershipView): void => {
      if (!fits(view)) return
      stop()
      resolve()
    }
    stop = log.onChange(look)
    look(log.view())
  })
}
