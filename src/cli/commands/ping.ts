import { MAX_PINGS } from '../../adapters/control/terms.js'
import { shortId } from '../../kit/ids.js'
import { shown } from '../../kit/text.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { countOption } from '../options.js'
import { plural } from '../terminal/render.js'
import { rttText } from '../words.js'

const PINGS = 4

/** `ping <peer>`. */
export const ping: Action = async ({ output, api }, [peer = ''], options) => {
  const count = countOption(options, 'count', [1, MAX_PINGS]) ?? PINGS
  const result = await api().call('peers.ping', { peer, count })
  if (output.json) {
    output.object('ping@1', {
      peer: { id: result.peer.id, name: result.peer.name },
      path: result.path,
      rttMs: result.rttMs
    })
    return EXIT.ok
  }
  output.print(`${output.paint('bold', shown(result.peer.name))} (${shortId(result.peer.id)}), ${result.path}`)
  result.rttMs.forEach((ms, i) => output.print(`  ${String(i + 1).padStart(3)}  ${rttText(ms)}`))
  const sorted = result.rttMs.toSorted((a, b) => a - b)
  const median = sorted[Math.floor((sorted.length - 1) / 2)] ?? null
  output.print(
    `${plural(sorted.length, 'ping')}: min ${rttText(sorted[0] ?? null)}, median ${rttText(median)}, max ${rttText(sorted.at(-1) ?? null)}`
  )
  return EXIT.ok
}
