import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import {
  dropHook,
  emptyShares,
  endHook,
  keepPlaced,
  mayRevive,
  openHook,
  placeNotice,
  restoreNotice,
  settleNotice,
  shareFault,
  undoPlaced
} from '../../../src/domain/gateway/push-shares.js'
import { holds } from '../../support/holds.js'

const BOUNDS = { hooks: 12, hooksOfOne: 5, waitingOfHook: 6, waitingOfOne: 12, least: 3 }
const OWNERS = 4

interface Notice {
  readonly generation: number
  readonly folded: number
}

/** Tasks with one config each, a ledger, and receivers; it throws where a promise is broken. */
class ShareWorld {
  readonly shares = emptyShares(BOUNDS)
  /** What the ledger holds, by hook, the oldest first. */
  readonly waiting = new Map<string, Notice[]>()
  readonly live = new Set<string>()
  readonly gone = new Set<string>()
  /** Events that happened for a hook, and those of which it was told or that were given up. */
  readonly happened = new Map<string, number>()
  readonly told = new Map<string, number>()
  /** Notifications that were given up. */
  readonly dead: (Notice & { readonly hook: string })[] = []
  #named = 0

  ownerOf(hook: string): string {
    return hook.slice(0, 1)
  }

  open(owner: string): void {
    const fault = shareFault(this.shares, owner)
    const own = [...this.shares.hooks].filter(([, share]) => share.owner === owner).length
    if ((fault !== null) !== (own >= BOUNDS.hooksOfOne || this.shares.hooks.size >= BOUNDS.hooks))
      throw new Error(`${fault}: ${own}`)
    if (fault !== null) return
    const hook = `${owner}${++this.#named}`
    openHook(this.shares, { hook, owner })
    this.live.add(hook)
  }

  /** So many events in one commit, which may fail first; the last may end the task. */
  happen(
    hook: string,
    { events, fails, ends }: { readonly events: number; readonly fails: number; readonly ends: boolean }
  ): void {
    if (!this.live.has(hook)) return
    const before = this.happened.get(hook) ?? 0
    for (let attempt = 0; attempt <= fails; attempt++) {
      undoPlaced(this.shares, hook)
      const list = [...(this.waiting.get(hook) ?? [])]
      for (let generation = before + 1; generation <= before + events; generation++) {
        const { over, folded } = placeNotice(this.shares, hook, generation)
        const at = list.findIndex((one) => one.generation === over)
        if (over !== null && at !== list.length - 1) throw new Error('another one than the newest gave its place')
        if (over !== null && at < BOUNDS.least - 1) throw new Error('one that may be under way gave its place')
        if (over !== null) list.pop()
        list.push({ generation, folded })
      }
      this.check()
      if (attempt < fails) continue
      this.waiting.set(hook, list)
      this.happened.set(hook, before + events)
    }
    keepPlaced(this.shares, hook)
    if (!ends) return
    endHook(this.shares, hook)
    this.live.delete(hook)
  }

  settle(hook: string, isDead: boolean): void {
    const one = this.waiting.get(hook)?.shift()
    if (one === undefined) return
    if (isDead) this.dead.push({ ...one, hook })
    else this.told.set(hook, (this.told.get(hook) ?? 0) + 1 + one.folded)
    settleNotice(this.shares, hook)
  }

  revive(): void {
    const one = this.dead.pop()
    if (one === undefined || this.gone.has(one.hook)) return
    const named = { hook: one.hook, owner: this.ownerOf(one.hook) }
    if (!mayRevive(this.shares, named)) return void this.dead.push(one)
    const list = [...(this.waiting.get(one.hook) ?? []), one].sort((a, b) => a.generation - b.generation)
    this.waiting.set(one.hook, list)
    restoreNotice(this.shares, named, one)
  }

  drop(hook: string): void {
    dropHook(this.shares, hook)
    this.live.delete(hook)
    this.waiting.delete(hook)
    this.gone.add(hook)
  }

  /** The process ends, and another one reads what is on record. */
  restart(): void {
    for (const hook of [...this.shares.hooks.keys()]) dropHook(this.shares, hook)
    if (this.shares.hooks.size + this.shares.owners.size > 0) throw new Error('something is left of nothing')
    for (const hook of this.live) openHook(this.shares, { hook, owner: this.ownerOf(hook) })
    for (const [hook, list] of this.waiting)
      for (const one of list) restoreNotice(this.shares, { hook, owner: this.ownerOf(hook) }, one)
  }

  check(): void {
    if (this.shares.hooks.size > BOUNDS.hooks) throw new Error('too many configs')
    const owners = new Map<string, { hooks: number; waiting: number }>()
    for (const [hook, { owner, waiting, draft, isLive }] of this.shares.hooks) {
      const all = owners.get(owner) ?? { hooks: 0, waiting: 0 }
      const own = waiting + (draft?.added ?? 0)
      owners.set(owner, { hooks: all.hooks + 1, waiting: all.waiting + own })
      if (own > BOUNDS.waitingOfHook) throw new Error(`${own} wait for ${hook}`)
      if (!isLive && own === 0) throw new Error('it counts, and is nothing')
    }
    for (const [owner, { hooks, waiting }] of owners) {
      if (hooks > BOUNDS.hooksOfOne) throw new Error('too many configs of one')
      if (waiting > BOUNDS.waitingOfOne + BOUNDS.least * BOUNDS.hooksOfOne) throw new Error(`${waiting} of one wait`)
      if (JSON.stringify(this.shares.owners.get(owner)) !== JSON.stringify({ hooks, waiting }))
        throw new Error('counted wrongly')
    }
    if (owners.size !== this.shares.owners.size) throw new Error('an owner of nothing')
  }

  /** After what is under way is done: the ledger has what the counts say, and no event is lost. */
  checkAll(): void {
    this.check()
    for (const [hook, list] of this.waiting) {
      if ((this.shares.hooks.get(hook)?.waiting ?? 0) !== list.length) throw new Error(`${hook}: ${list.length} wait`)
      if (list.length > BOUNDS.waitingOfHook) throw new Error(`${list.length} wait`)
      const events = [...list, ...this.dead.filter((one) => one.hook === hook)].reduce(
        (sum, { folded }) => sum + 1 + folded,
        0
      )
      if (events + (this.told.get(hook) ?? 0) !== (this.happened.get(hook) ?? 0))
        throw new Error(`${hook}: an event is lost`)
    }
  }
}

const action = fc.record({
  kind: fc.constantFrom(
    'open',
    'happen',
    'happen',
    'happen',
    'settle',
    'settle',
    'give up',
    'revive',
    'drop',
    'restart'
  ),
  at: fc.nat(1000),
  events: fc.integer({ min: 1, max: 9 }),
  fails: fc.nat(2),
  ends: fc.boolean()
})

test('configs and waiting events stay within the shares of their callers, and every event is in a waiting notification, after any steps', async (t: Assert) => {
  await holds(
    t,
    fc.property(fc.array(action, { maxLength: 200 }), (actions) => {
      const world = new ShareWorld()
      for (const { kind, at, ...how } of actions) {
        const hooks = [...new Set([...world.live, ...world.waiting.keys()])]
        const hook = hooks[at % Math.max(1, hooks.length)] ?? ''
        if (kind === 'open') world.open(String.fromCharCode(97 + (at % OWNERS)))
        else if (kind === 'happen') world.happen(hook, { ...how, ends: how.ends && at % 3 === 0 })
        else if (kind === 'settle' || kind === 'give up') world.settle(hook, kind === 'give up')
        else if (kind === 'revive') world.revive()
        else if (kind === 'restart') world.restart()
        else if (at % 4 === 0) world.drop(hook)
        world.checkAll()
      }
    }),
    300
  )
})

test('a caller at its share takes no slot from another one', (t: Assert) => {
  const shares = emptyShares(BOUNDS)
  for (let at = 0; at < BOUNDS.hooksOfOne; at++) openHook(shares, { hook: `a${at}`, owner: 'a' })
  for (let at = 0; at < BOUNDS.hooksOfOne; at++)
    for (let generation = 1; generation < 100; generation++) placeNotice(shares, `a${at}`, generation)
  t.ok(shareFault(shares, 'a')?.startsWith('you have 5 push configs'))
  t.is(shareFault(shares, 'b'), null)
  openHook(shares, { hook: 'b', owner: 'b' })
  for (let generation = 1; generation <= BOUNDS.waitingOfHook; generation++)
    t.is(placeNotice(shares, 'b', generation).over, null, 'each of its own has a place')
  t.alike(placeNotice(shares, 'b', 7), { generation: 7, folded: 1, over: 6 })
})

test('each webhook keeps three notifications of its own though its caller is at its limit', (t: Assert) => {
  const shares = emptyShares(BOUNDS)
  const place = (hook: string, generation: number): number | null => {
    const { over } = placeNotice(shares, hook, generation)
    keepPlaced(shares, hook)
    return over
  }
  for (const hook of ['a1', 'a2', 'a3']) openHook(shares, { hook, owner: 'a' })
  for (const hook of ['a1', 'a2'])
    for (let generation = 1; generation <= BOUNDS.waitingOfHook; generation++) place(hook, generation)
  t.is(shares.owners.get('a')?.waiting, BOUNDS.waitingOfOne)
  t.alike(
    [1, 2, 3].map((generation) => place('a3', generation)),
    [null, null, null]
  )
  t.alike(
    [4, 5].map((generation) => place('a3', generation)),
    [3, 4],
    'then the newest gives its place, never the oldest two'
  )
})
