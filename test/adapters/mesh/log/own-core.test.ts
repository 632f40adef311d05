import test from 'brittle'
import { OwnCore } from '../../../../src/adapters/mesh/log/own-core.js'
import type { MembershipView } from '../../../../src/domain/membership/types.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor, founded, keyText } from '../../../support/membership.js'

const owner = actor('owner')
const OWN = keyText('core/own')

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** A home of the owner, and what it did. */
function scene({ takesOver, fails = 0 }: { readonly takesOver: boolean; readonly fails?: number }) {
  const done: string[] = []
  const clock = new ManualClock()
  let left = fails
  let view: MembershipView = founded().view()
  const core = new OwnCore({
    nodeId: owner.id,
    coreKey: OWN,
    takesOver,
    clock,
    claim: (serial) => {
      done.push(`claims ${serial}`)
      return left-- > 0 ? Promise.reject(new Error('nobody')) : Promise.resolve()
    },
    onAdmitted: () => void done.push('holds'),
    onReplaced: () => void done.push('replaced')
  })
  const show = (coreKey: string, coreSerial?: number): Promise<void> => {
    const member = view.members.get(owner.id)
    if (member === undefined) throw new Error('no owner')
    const next = { ...member, coreKey, ...(coreSerial === undefined ? {} : { coreSerial }) }
    view = { ...view, members: new Map([[owner.id, next]]) }
    core.review(() => view)
    return turn()
  }
  return { core, clock, done, show }
}

test('a home whose core is the one of the log does nothing', async (t) => {
  const { done, show } = scene({ takesOver: false })
  await show(OWN)
  await show(OWN, 3)
  t.alike(done, [])
})

test('a restored home claims the next number until it has the place, and from then on never again', async (t) => {
  const { clock, done, show, core } = scene({ takesOver: true, fails: 1 })
  await show('former', 4)
  t.alike(done, ['claims 5'])
  clock.advance(1000)
  await turn()
  t.alike(done, ['claims 5', 'claims 5'], 'an entry without a taker is offered again')
  core.close()
  clock.advance(5000)
  await turn()
  t.is(done.length, 2)
  const next = scene({ takesOver: true })
  await next.show(OWN, 1)
  t.alike(next.done, ['holds'])
  await next.show('another', 2)
  t.alike(next.done, ['holds', 'replaced'])
})

test('a home of which the log names another since is replaced; a core of an earlier try to join is not meant', async (t) => {
  const { done, show } = scene({ takesOver: false })
  await show('earlier')
  t.alike(done, [])
  await show('another', 1)
  t.alike(done, ['replaced'])
})

test('a home whose node had eight cores claims no further one, and says so', async (t) => {
  const ann = actor('ann')
  const log = founded()
  log.join(owner, ann, { admin: true })
  const member = log.view().members.get(ann.id)
  if (member === undefined) throw new Error('no member')
  const done: string[] = []
  const claim = (serial: number): Promise<void> => Promise.resolve(void done.push(`claims ${serial}`))
  const parts = {
    nodeId: ann.id,
    coreKey: OWN,
    takesOver: true,
    clock: new ManualClock(),
    claim,
    onAdmitted: () => {},
    onReplaced: () => {}
  }
  const core = new OwnCore(parts)
  const shown = (count: number): MembershipView => {
    const formerCores = Array.from({ length: count }, (_, at) => keyText(`core/ann/${at}`))
    return { ...log.view(), members: new Map([[ann.id, { ...member, coreSerial: 9, formerCores }]]) }
  }
  core.review(() => shown(7))
  await turn()
  t.alike([core.isRefused, done], [true, []])
  core.review(() => shown(6))
  await turn()
  t.alike([core.isRefused, done], [false, ['claims 10']])
  core.close()
})
