import { inTurn, inviteFor, untilPeer } from '../bench/nodes.mjs'
import { KINDS, openInternet } from './internet.mjs'
import { startOn } from './nodes.mjs'

/** The longest time until both sides see each other online, in seconds. */
const GOAL_S = 15

/** Each kind of NAT joins a founder behind each kind. */
export async function figures(lab, say) {
  const net = await openInternet(lab)
  const pairs = KINDS.flatMap((founder) => KINDS.map((newcomer) => ({ founder, newcomer })))
  const found = await inTurn(pairs, async (pair) => {
    const seconds = await joinPair(lab, net, pair)
    say(`${pair.newcomer} joins ${pair.founder}: ${typeof seconds === 'number' ? `${seconds.toFixed(1)} s` : seconds}`)
    return { ...pair, seconds }
  })
  const times = found.flatMap(({ seconds }) => (typeof seconds === 'number' ? [seconds] : []))
  const failed = found.filter(({ seconds }) => typeof seconds !== 'number')
  const note = failed.map(({ founder, newcomer, seconds }) => `${newcomer} to ${founder}: ${seconds}`).join('; ')
  return [
    {
      name: 'pairs of NAT kinds that are linked',
      unit: 'of 9',
      goal: pairs.length,
      bound: 'min',
      samples: [times.length],
      note
    },
    { name: 'join until both sides are online', unit: 's', goal: GOAL_S, statistic: 'worst', samples: times }
  ]
}

/** Seconds from the start of the newcomer, or the code of its error. */
async function joinPair(lab, net, kinds) {
  const founder = await startOn(lab, { net, host: net.host(kinds.founder), name: 'a' })
  const join = await inviteFor(founder)
  const from = performance.now()
  const newcomer = await startOn(lab, { net, host: net.host(kinds.newcomer), name: 'b', join }).catch(
    (error) => /"code":"([A-Z_]+)"/.exec(error.message)?.[1] ?? error.message
  )
  const at =
    typeof newcomer === 'string'
      ? null
      : Math.max(...(await Promise.all([untilPeer(founder, 'b', 'online'), untilPeer(newcomer, 'a', 'online')])))
  await Promise.all([founder, newcomer].map((one) => (typeof one === 'string' ? null : one.stop())))
  return at === null ? newcomer : (at - from) / 1000
}
