import { setTimeout as delay } from 'node:timers/promises'
import fs from 'node:fs'
import path from 'node:path'
import { allOnline, inTurn, inviteFor, untilPeer, untilTrue } from '../bench/nodes.mjs'
import { openInternet } from './internet.mjs'
import { startOn } from './nodes.mjs'

const CUTS_S = [5, 15, 75]
/** Numbered messages for each cut: half before it, the others while it lasts and after. */
const MESSAGES = 1000
const IN_FLIGHT = 20
/** Goals, in seconds. */
const [MEDIAN_S, WORST_S] = [3, 10]

/** Two members behind NATs that keep ports are cut off each other under load, and heal. */
export async function figures(lab, say) {
  const net = await openInternet(lab)
  const [here, there] = [net.host('preserving'), net.host('preserving')]
  const receiver = await startOn(lab, { net, host: there, name: 'b' })
  const sender = await startOn(lab, { net, host: here, name: 'a', join: await inviteFor(receiver) })
  const log = addCounter(receiver)
  await allOnline([sender, receiver])
  await untilTrue(async () => (await agents(sender)).includes('counter@b'), 'the agent is known')
  const runs = await inTurn(CUTS_S, async (seconds) => {
    const run = await cutOnce({ sender, receiver, host: here, log }, seconds)
    say(`cut of ${seconds} s: healed after ${run.healedS.toFixed(2)} s, ${run.lost} lost, ${run.doubled} doubled`)
    return run
  })
  const healed = runs.map(({ healedS }) => healedS)
  const note = `after cuts of ${CUTS_S.join(', ')} s`
  return [
    { name: 'healed p50', unit: 's', goal: MEDIAN_S, samples: healed, note },
    { name: 'healed max', unit: 's', goal: WORST_S, statistic: 'worst', samples: healed },
    {
      name: `lost of ${MESSAGES} messages`,
      unit: '',
      goal: 0,
      statistic: 'worst',
      samples: runs.map(({ lost }) => lost)
    },
    { name: 'doubled', unit: '', goal: 0, statistic: 'worst', samples: runs.map(({ doubled }) => doubled) }
  ]
}

/** An agent that appends the number of each message to a file. */
function addCounter({ home }) {
  const dir = path.join(home, 'agents')
  const log = path.join(home, 'numbers')
  fs.mkdirSync(dir, { recursive: true })
  fs.writeFileSync(
    path.join(dir, 'counter.mjs'),
    `import fs from 'node:fs'
export default { async run({ input }) { fs.appendFileSync(${JSON.stringify(log)}, input.n + '\\n'); return null } }
`
  )
  fs.writeFileSync(log, '')
  fs.writeFileSync(
    path.join(dir, 'counter.md'),
    `---
name: counter
description: Writes numbers to a file.
a2a:
  version: 0.1.0
  capabilities:
    - { id: count.add, description: add, input: { type: object }, idempotent: false, sideEffect: write }
  runtime: { type: module, path: ./counter.mjs }
  limits: { concurrency: 16 }
---
`
  )
  return log
}

async function cutOnce({ sender, receiver, host, log }, seconds) {
  fs.writeFileSync(log, '')
  await sendNumbers(sender, 0, MESSAGES / 2)
  host.unplug(true)
  const lost = Promise.all([untilPeer(sender, 'b', 'offline'), untilPeer(receiver, 'a', 'offline')])
  // A short cut may go unnoticed.
  lost.catch(() => {})
  const rest = sendNumbers(sender, MESSAGES / 2, MESSAGES)
  await Promise.all([delay(seconds * 1000), seconds > 10 ? lost : null])
  host.unplug(false)
  const from = performance.now()
  const at = Math.max(...(await Promise.all([untilPeer(sender, 'b', 'online'), untilPeer(receiver, 'a', 'online')])))
  await rest
  const numbers = () => fs.readFileSync(log, 'utf8').trim().split('\n').map(Number)
  await untilTrue(async () => new Set(numbers()).size === MESSAGES, 'all numbers came').catch(() => {})
  const got = numbers()
  const known = new Set(got).size
  return { healedS: (at - from) / 1000, lost: MESSAGES - known, doubled: got.length - known }
}

/** Hands in recorded one-way requests, which nobody waits for. */
async function sendNumbers({ api }, from, to) {
  let next = from
  const lane = async () => {
    while (next < to) {
      const input = { n: next++ }
      await api.call('message.call', { agent: 'counter@b', capability: 'count.add', input, wait: false })
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
}

async function agents({ api }) {
  return (await api.call('agents.list', {})).agents.map(({ address }) => address)
}
