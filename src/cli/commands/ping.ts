import { setTimeout as delay } from 'node:timers/promises'
import { MAX_PINGS } from '../../adapters/control/terms.js'
import { asNodeError, NodeError } from '../../kit/errors.js'
import { shortId } from '../../kit/ids.js'
import { isRecord } from '../../kit/json.js'
import { shellWord, shown } from '../../kit/text.js'
import { formatDuration } from '../../kit/units.js'
import type { Calls } from '../../ports/node-api.js'
import type { Action, CommandContext } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { countOption, durationOption, isSet } from '../options.js'
import { plural } from '../terminal/render.js'
import { rttText } from '../words.js'

const PINGS = 4
/** Without `--timeout`, `--until-direct` waits this long, in milliseconds; and the longest wait of it. */
const DIRECT_MS = 30_000
const DIRECT_MAX_MS = 600_000
/** Between two pings of `--until-direct`, and the longest wait for one, in milliseconds. */
const EVERY_MS = 1000
const PING_MS = 5000

type Pinged = Calls['peers.ping']['result']

/** `ping <peer>`. */
export const ping: Action = async (context, [peer = ''], options) => {
  if (isSet(options, 'untilDirect')) {
    if (options['count'] !== undefined)
      throw new NodeError('USAGE', '--until-direct counts no pings: leave out --count')
    const limitMs = durationOption(options, 'timeout') ?? DIRECT_MS
    return await pingUntilDirect(context, peer, Math.min(limitMs, DIRECT_MAX_MS))
  }
  const { output, api } = context
  const count = countOption(options, 'count', [1, MAX_PINGS]) ?? PINGS
  const result = await api().call('peers.ping', { peer, count })
  if (output.json) {
    output.object('ping@1', shapeOf(result))
    return EXIT.ok
  }
  output.print(headOf(context, result))
  result.rttMs.forEach((ms, i) => output.print(`  ${String(i + 1).padStart(3)}  ${rttText(ms)}`))
  const sorted = result.rttMs.toSorted((a, b) => a - b)
  const median = sorted[Math.floor((sorted.length - 1) / 2)] ?? null
  output.print(
    `${plural(sorted.length, 'ping')}: min ${rttText(sorted[0] ?? null)}, median ${rttText(median)}, max ${rttText(sorted.at(-1) ?? null)}`
  )
  return EXIT.ok
}

/** Pings once a second. Exit code 0 at a direct path, 6 when another one stays; the error of the last ping for none. */
async function pingUntilDirect(context: CommandContext, peer: string, limitMs: number): Promise<number> {
  const { output } = context
  const startedAt = performance.now()
  const leftMs = (): number => limitMs - (performance.now() - startedAt)
  let last: Pinged | NodeError = new NodeError('TIMEOUT', 'no ping was sent')
  let noted = ''
  do {
    last = await pingOnce(context, peer, Math.max(1, Math.min(PING_MS, leftMs())))
    const state = last instanceof NodeError ? last.message : last.path
    if (!isDirect(last) && state !== noted) output.note(`not direct yet: ${shown(state, 500)}`)
    noted = state
    if (!isDirect(last)) await delay(Math.max(0, Math.min(EVERY_MS, leftMs())))
  } while (!isDirect(last) && leftMs() > 0)
  if (last instanceof NodeError) throw isRelayed(last) ? stillRelayed(last, peer) : last
  const direct = isDirect(last)
  if (output.json) output.object('ping@1', { ...shapeOf(last), direct })
  else output.print(`${headOf(context, last)}, ${rttText(last.rttMs[0] ?? null)}`)
  if (direct) return EXIT.ok
  output.note(`the path stayed ${last.path} for ${formatDuration(limitMs)}`)
  output.note(`  try: ${output.hint(`a2a-node doctor ${shellWord(last.peer.name)}`)}`)
  return EXIT.timedOut
}

/** Is a peer without a link reached by way of another one? */
function isRelayed({ data }: NodeError): boolean {
  return isRecord(data) && data['path'] === 'relayed'
}

function stillRelayed({ message, data }: NodeError, peer: string): NodeError {
  return new NodeError('TIMEOUT', message, { data, next: [`a2a-node doctor ${shellWord(peer)}`] })
}

/** The error of a peer that may be reached later is a result. */
async function pingOnce({ api }: CommandContext, peer: string, timeoutMs: number): Promise<Pinged | NodeError> {
  return await api()
    .call('peers.ping', { peer, count: 1 }, { timeoutMs })
    .catch((error: unknown) => {
      const known = asNodeError(error)
      if (known.code === 'PEER_OFFLINE' || known.code === 'TIMEOUT') return known
      throw error
    })
}

function isDirect(last: Pinged | NodeError): boolean {
  return !(last instanceof NodeError) && last.path !== 'websocket' && last.path !== 'relayed'
}

function shapeOf({ peer, path, rttMs }: Pinged): object {
  return { peer: { id: peer.id, name: peer.name }, path, rttMs }
}

function headOf({ output }: CommandContext, { peer, path }: Pinged): string {
  return `${output.paint('bold', shown(peer.name))} (${shortId(peer.id)}), ${path}`
}
