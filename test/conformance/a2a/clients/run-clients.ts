import type { CaseResult } from '../report.js'
import type { Verdict } from '../run-case.js'
import type { World } from '../world.js'
import { CHECKS, type ForeignClient } from './checks.js'
import { JS_CLIENT } from './js-client.js'
import { OLD_JS_CLIENT } from './js-old-client.js'
import { PROGRAMS } from './programs.js'

/** Runs every client by each of its bindings at every place. */
export async function runClients(
  world: World,
  clients: readonly ForeignClient[] = [JS_CLIENT, OLD_JS_CLIENT, ...PROGRAMS]
): Promise<CaseResult[]> {
  const results: CaseResult[] = []
  for (const client of clients) {
    const missing = await client.prepare()
    for (const place of world.places) {
      for (const transport of client.transports) {
        const way = `${client.name} ${transport === 'JSONRPC' ? 'jsonrpc' : 'rest'}`
        const target = { url: place.urlOf('acts'), token: place.tokens.client ?? '', hook: world.hook('clients') }
        const verdicts = missing === null ? await client.run(target, transport).catch(failed) : new Map()
        for (const id of CHECKS) {
          const lack = missing ?? client.lacks[id]
          const verdict: Verdict =
            lack === undefined
              ? (verdicts.get(id) ?? { state: 'failed', why: `not done: ${verdicts.get('')?.why ?? ''}` })
              : { state: 'skipped', why: lack }
          results.push({ id, level: 'client', way, place: place.name, ...verdict })
        }
      }
    }
  }
  return results
}

function failed(error: unknown): ReadonlyMap<string, Verdict> {
  return new Map([['', { state: 'failed', why: error instanceof Error ? error.message : String(error) }]])
}
