import test, { type Assert } from 'brittle'
import { failsWith } from '../../../support/fails.js'
import { inviteCode, type LabNode, meshLab } from '../lab.js'

/**
 * An owner with two places, taken by two members that want links to it alone, and a third member that has yet to start.
 */
async function full(t: Assert) {
  const lab = await meshLab(t)
  const owner = await lab.found('owner', { maxLinks: 2 })
  await owner.start({ want: false })
  const code = await inviteCode(owner, { uses: 3 })
  const [first, second] = [await lab.join('first', code), await lab.join('second', code)]
  for (const one of [first, second]) {
    await one.start({ want: false })
    one.mesh.links.want([owner.id])
    await Promise.all([owner.seen.link(one.id), one.seen.link(owner.id)])
  }
  const third = await lab.join('third', code)
  owner.mesh.links.want([first.id, second.id, third.id])
  return { lab, owner, first, second, third }
}

/** Peers to whom a node has links that are not about to end. */
function linked(node: LabNode): string[] {
  return node.mesh.links
    .list()
    .filter((one) => !one.closed)
    .map((one) => one.peer)
    .sort()
}

test('an unused link is closed for a member that connects; both ends know why, and neither dials the other again', {
  timeout: 120_000
}, async (t) => {
  const { owner, first, second, third } = await full(t)
  const idle = await owner.seen.link(first.id)
  owner.seen.spared = idle
  await third.start({ want: false })
  third.mesh.links.want([owner.id])
  await Promise.all([third.seen.link(owner.id), owner.seen.link(third.id)])
  await first.seen.until(() => first.seen.rested.length === 1)
  await owner.seen.until(() => owner.seen.rested.length === 1)
  t.alike(owner.seen.rested, [idle])
  t.is(first.seen.rested[0]?.peer, owner.id)
  t.alike(linked(owner), [second.id, third.id].sort())
  t.alike(first.mesh.links.beyond(), [owner.id], 'it does not look for it')
  t.alike(owner.mesh.links.beyond(), [first.id])
  t.absent(linked(first).includes(owner.id))
  t.alike(
    owner.refused.filter((one) => one.kind === 'strike'),
    []
  )
})

test('an unused link is closed for a dialled one, once that one is open', { timeout: 120_000 }, async (t) => {
  const { owner, first, third } = await full(t)
  owner.seen.spared = await owner.seen.link(first.id)
  await third.start({ want: false })
  const link = await owner.mesh.links.dial(third.id, 60_000)
  t.is(link.peer, third.id)
  await first.seen.until(() => first.seen.rested.length === 1)
  t.is(linked(owner).length, 2)
})

test('while every link is in use a member that comes is sent away and nobody is dialled; nothing is closed for one that does not answer', {
  timeout: 120_000
}, async (t) => {
  const { lab, owner, first, second, third } = await full(t)
  await third.start({ want: false })
  await failsWith(t, 'PEER_OFFLINE', () => owner.mesh.links.dial(third.id, 3_600_000))
  const error = await failsWith(t, 'PEER_OFFLINE', () => third.mesh.links.dial(owner.id, 3_600_000))
  t.ok(error.message.includes('as many links as it may'), 'it learns that at once')
  t.alike(third.mesh.links.beyond(), [])
  t.alike(linked(owner), [first.id, second.id].sort())
  const gone = await lab.join('gone', await inviteCode(owner))
  await gone.close()
  owner.seen.spared = await owner.seen.link(first.id)
  await failsWith(t, 'PEER_OFFLINE', () => owner.mesh.links.dial(gone.id, 200))
  t.alike(linked(owner), [first.id, second.id].sort())
  t.alike(owner.seen.rested, [])
})

test('a link that is closed for another accepts nothing more to send, and frames that its peer had sent are still read', {
  timeout: 120_000
}, async (t) => {
  const { owner, first, third } = await full(t)
  const [here, there] = [await owner.seen.link(first.id), await first.seen.link(owner.id)]
  owner.seen.spared = here
  there.send(Uint8Array.of(7))
  await third.start({ want: false })
  third.mesh.links.want([owner.id])
  await owner.seen.until(() => owner.seen.rested.length === 1)
  t.ok(here.closed)
  t.absent(here.send(Uint8Array.of(1)))
  t.alike(
    owner.seen.frames.filter(({ link }) => link === here).map(({ frame }) => [...frame]),
    [[7]]
  )
})
