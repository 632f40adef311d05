import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { CallerTerms } from '../../adapters/control/caller-terms.js'
import { openControl } from '../../adapters/control/client.js'
import { NodeError } from '../../kit/errors.js'
import { shellWord, shown } from '../../kit/text.js'
import type { HomePaths } from '../../config/paths.js'
import { EXIT } from '../exit-codes.js'
import { stopSignals } from '../signals.js'
import { ownRoot } from '../start/own-package.js'
import { LastKnown } from './last-known.js'
import type { NodeLinkDeps } from './node-link.js'
import { Shim } from './shim.js'

/** A client that is served. */
export interface ServedClient {
  readonly paths: HomePaths
  /** `--home` as it was typed. */
  readonly home: string | null
  /** Prints a line for people. */
  note(line: string): void
  /** Its rights; null: the operator's. */
  readonly terms: CallerTerms | null
  /** Milliseconds for an answer of the node to a new connection. Default: 10,000. */
  readonly limitMs?: number
  /** Starts a node for the time of its clients. Absent: nodes are started by others. */
  readonly start?: () => Promise<void>
}

const MAX_TIMER_MS = 2 ** 31 - 1

const CLOCK: NodeLinkDeps['clock'] = {
  monotonic: () => performance.now(),
  after: (delayMs, run) => setTimeout(run, delayMs).unref(),
  clear: (timer) => clearTimeout(timer as NodeJS.Timeout | undefined)
}

/**
 * Makes standard input and output an MCP connection until the client ends its input, or this process gets a signal. The
 * node may end and come again meanwhile. @returns the exit code
 * @throws NodeError USAGE, NO_PERMISSION when the node can never be reached this way
 */
export async function serveClient(served: ServedClient): Promise<number> {
  const { terms, start, limitMs, paths } = served
  const signals = stopSignals()
  const opening = { terms, ...(limitMs === undefined ? {} : { limitMs }) }
  const shim = new Shim({
    clock: CLOCK,
    client: { input: process.stdin, output: process.stdout },
    known: new LastKnown(path.join(paths.home, 'mcp-clients', `${digest(terms)}.json`)),
    version,
    startCommand: `a2a-node ${served.home === null ? '' : `--home ${shellWord(served.home)} `}start --detach`,
    connect: async () => await openControl(paths.socket, 'mcp', opening).catch(olderBuild),
    hasCrashed: () => existsSync(paths.socket),
    note: (text) => served.note(shown(text, 1000)),
    ...(start === undefined ? {} : { start })
  })
  // Timers of the shim keep no process alive, and a script's input may have ended.
  const alive = setInterval(() => {}, MAX_TIMER_MS)
  try {
    const code = await Promise.race([shim.run(), signals.first])
    return typeof code === 'number' ? code : EXIT.ok
  } finally {
    clearInterval(alive)
    shim.close()
    signals.release()
  }
}

/** Clients with the same rights see the same lists. */
function digest(terms: CallerTerms | null): string {
  return createHash('sha256').update(JSON.stringify(terms)).digest('hex').slice(0, 16)
}

function version(): string {
  const file = path.join(ownRoot(), 'package.json')
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version
}

function olderBuild(error: unknown): never {
  if (!(error instanceof NodeError) || error.code !== 'USAGE') throw error
  throw new NodeError(
    'USAGE',
    `the running node does not take rights of a client; it may be of an earlier build: ${error.message}`,
    { next: ['a2a-node stop', 'a2a-node start --detach'], cause: error }
  )
}
