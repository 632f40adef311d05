import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { openLab } from '../lab.mjs'
import { namespaceFault, openIsland } from '../netns.mjs'
import { allOnline, inTurn, inviteFor, startNode, times, untilPeer } from '../nodes.mjs'

const CUT_MS = 15_000
/** Islands that are cut in one round, each with three nodes. */
const ISLANDS = 5
const BOOTSTRAP_PORT = 29_737
/** Between a heal and the next cut, in milliseconds. */
const CALM_MS = 3000
/** Between the cuts of two islands, in milliseconds. */
const APART_MS = 700
/** A join that fails is tried again, as a person would, so many times. */
const JOIN_TRIES = 6
const JOIN = 'join between hosts, to both sides online'

/**
 * The two ways in which a link is cut. Host 0 is the founder, which serves the bootstrap; 1 and 2 are the two nodes.
 */
const CUTS = [
  {
    name: 'link cut 15 s between two nodes',
    cut: (hosts, isCut) => inTurn([hosts[1], hosts[2]], (host) => host.isolate(isCut))
  },
  { name: 'one node cut off all others for 15 s', cut: (hosts, isCut) => hosts[2].unplug(isCut) }
]

/** All traffic between two nodes dropped for 15 s, then restored: how long until both see each other online again. */
export async function figures({ runs, say }) {
  const fault = namespaceFault()
  if (fault !== null) {
    const skipped = CUTS.flatMap(({ name }) => rows(name, [], `skipped: ${fault}`))
    return [{ name: JOIN, unit: 's', goal: 3, samples: [] }, ...skipped]
  }
  const lab = openLab()
  try {
    const islands = await times(Math.min(ISLANDS, runs), () => openNodes(lab))
    const joins = { name: JOIN, unit: 's', goal: 3, samples: islands.flatMap(({ joinSeconds }) => joinSeconds) }
    const cuts = await inTurn(CUTS, (cut) =>
      cutAll(islands, { ...cut, rounds: Math.ceil((2 * runs) / islands.length), say })
    )
    return [joins, ...cuts.flat()]
  } finally {
    await lab.close()
  }
}

/** Cuts every island at about the same time, so many times. */
async function cutAll(islands, { name, cut, rounds, say }) {
  const samples = await times(rounds, async () => {
    const healed = await Promise.all(islands.map((island, index) => cutOnce(island, { cut, lateMs: index * APART_MS })))
    say(`${name}: healed after ${healed.map((seconds) => seconds.toFixed(2)).join(' ')} s`)
    await delay(CALM_MS)
    return healed
  })
  return rows(
    name,
    samples.flat(),
    'from the restored link until each of the two sees the other online; network namespaces'
  )
}

function rows(name, samples, note) {
  return [
    { name: `${name}, healed p50`, unit: 's', goal: 3, samples },
    { name: `${name}, healed max`, unit: 's', goal: 10, statistic: 'worst', samples, note }
  ]
}

/** Three nodes on an island of a private network: the founder with the bootstrap, and two members. */
async function openNodes(lab) {
  const hosts = openIsland(lab, 3)
  const bootstrap = `${hosts[0].address}:${BOOTSTRAP_PORT}`
  const partsOf = (index) => ({
    home: path.join(lab.dir(), 'h'),
    name: `n${index}`,
    env: { ...process.env, NO_COLOR: '1' },
    through: hosts[index].through
  })
  const founder = await startNode(lab, {
    ...partsOf(0),
    args: ['--network', 'private', '--serve-bootstrap', bootstrap]
  })
  const join = await inviteFor(founder, 2)
  const members = await inTurn([1, 2], (index) => joinNode({ lab, founder }, { ...partsOf(index), join }))
  const nodes = [founder, ...members.map(({ node }) => node)]
  await allOnline(nodes)
  return { hosts, nodes, joinSeconds: members.map(({ seconds }) => seconds) }
}

/**
 * Joins, again when it fails. The seconds count from the first try until founder and newcomer see each other online.
 */
async function joinNode({ lab, founder }, parts, tries = JOIN_TRIES) {
  const from = performance.now()
  const node = await startNode(lab, parts).catch((error) => {
    if (tries === 1) throw error
    return null
  })
  if (node === null) {
    const next = await joinNode({ lab, founder }, parts, tries - 1)
    return { node: next.node, seconds: next.seconds + (next.from - from) / 1000, from }
  }
  const at = Math.max(
    ...(await Promise.all([untilPeer(founder, node.name, 'online'), untilPeer(node, founder.name, 'online')]))
  )
  return { node, seconds: (at - from) / 1000, from }
}

/**
 * Cuts, waits, restores; the seconds until both are online for each other again. Fails when the cut was not noticed.
 */
async function cutOnce({ hosts, nodes }, { cut, lateMs }) {
  const [, a, b] = nodes
  await delay(lateMs)
  const lost = [untilPeer(a, b.name, 'offline'), untilPeer(b, a.name, 'offline')]
  await cut(hosts, true)
  const cutAt = performance.now()
  const lostAt = Math.max(...(await Promise.all(lost)))
  await delay(CUT_MS - (lostAt - cutAt))
  await cut(hosts, false)
  const restoredAt = performance.now()
  const healedAt = Math.max(...(await Promise.all([untilPeer(a, b.name, 'online'), untilPeer(b, a.name, 'online')])))
  await allOnline(nodes)
  return (healedAt - restoredAt) / 1000
}
