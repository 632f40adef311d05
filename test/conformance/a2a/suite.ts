import { JSON_RPC, REST, type Binding } from './bindings.js'
import { BINDINGS, type BindingName, type Case, readCases } from './cases.js'
import type { CaseResult } from './report.js'
import { runCase, type Verdict } from './run-case.js'
import type { Place, World } from './world.js'

/** Cases that run at once. */
const AT_ONCE = 4

const CLIENTS: Readonly<Partial<Record<BindingName, Binding>>> = { jsonrpc: JSON_RPC, rest: REST }
/** Names of bindings on cards. */
const ON_CARDS: Readonly<Record<BindingName, string>> = { jsonrpc: 'JSONRPC', rest: 'HTTP+JSON', grpc: 'GRPC' }

/** Runs cases by every binding at every place. Default: all cases. */
export async function runSuite(world: World, cases: readonly Case[] = readCases()): Promise<CaseResult[]> {
  const results: CaseResult[] = []
  for (const place of world.places) {
    for (const way of BINDINGS) {
      const queue = cases.filter(({ only }) => only.includes(way))
      const work = async (): Promise<void> => {
        for (let one = queue.shift(); one !== undefined; one = queue.shift())
          results.push({
            id: one.id,
            level: one.level,
            way,
            place: place.name,
            ...(await verdictOf(one, { way, place, world }))
          })
      }
      await Promise.all(Array.from({ length: AT_ONCE }, work))
    }
  }
  return results
}

async function verdictOf(
  one: Case,
  { way, place, world }: { readonly way: BindingName; readonly place: Place; readonly world: World }
): Promise<Verdict> {
  if (!place.bindings.includes(ON_CARDS[way])) return { state: 'skipped', why: `the card has no ${ON_CARDS[way]}` }
  const binding = CLIENTS[way]
  if (binding === undefined) return { state: 'failed', why: `the runner has no client of ${ON_CARDS[way]}` }
  return await runCase(one, { place, binding, world })
}
