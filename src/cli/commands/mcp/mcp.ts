import type { Duplex } from 'node:stream'
import type { CallerTerms } from '../../../adapters/control/caller-terms.js'
import { openControl } from '../../../adapters/control/client.js'
import { NodeError } from '../../../kit/errors.js'
import { shown } from '../../../kit/text.js'
import type { Action, CommandContext } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import { tuneHeap } from '../../heap.js'
import { callerTerms } from '../../clients/caller.js'
import { durationOption, isSet, type Options, textOption } from '../../options.js'
import { runningNode } from '../../running.js'
import { type StopSignals, stopSignals } from '../../signals.js'
import { withForgetting } from '../../start/memory.js'
import { startSettings } from '../../start-settings.js'

/**
 * `mcp serve`: standard input and output become an MCP connection to the running node. Ends when its client ends its
 * input (exit 0), or the node stops (NODE_NOT_RUNNING).
 */
export const serveMcp: Action = async (context, _args, options) => {
  const signals = stopSignals()
  const { socket } = context.paths()
  const terms = callerIn(options)
  try {
    const isRunning = !isSet(options, 'embed') || (await runningNode(socket)) !== null
    const limitMs = durationOption(options, 'timeout')
    const opening = { terms, ...(limitMs === undefined ? {} : { limitMs }) }
    if (isRunning) return await bridge(await openControl(socket, 'mcp', opening).catch(notRunning), signals)
    return await embedded(context, options, signals)
  } finally {
    signals.release()
  }
}

/** The rights of the client; null for the operator's: entries of earlier builds name none. @throws NodeError USAGE */
function callerIn(options: Options): CallerTerms | null {
  const isNamed = ['as', 'tier', 'sandbox', 'agents', 'tools'].some((one) => textOption(options, one) !== undefined)
  return isNamed ? callerTerms(options, 'mcp') : null
}

/** Runs a node for as long as the client stays. Nothing but the protocol may reach standard output. */
async function embedded(context: CommandContext, options: Options, signals: StopSignals): Promise<number> {
  tuneHeap()
  const { startNode } = await import('../../../compose/compose.js')
  const { takeUncaughtErrors } = await import('../../package-errors.js')
  const { takePackageOutput } = await import('../../terminal/package-output.js')
  // Its own `--agents` are the ids that the client may use; those of `start` are directories.
  const settings = await startSettings(context, { ...options, agents: undefined })
  for (const fault of settings.faults) context.output.note(shown(fault, 1000))
  const node = await startNode({
    config: settings.config,
    home: context.paths(),
    name: null,
    join: null,
    extraAgentDirs: settings.agentDirs,
    ...takeUncaughtErrors(),
    packageOutput: takePackageOutput(),
    onProgress: (line) => context.output.note(line)
  }).catch((error: unknown) => Promise.reject(withForgetting(error, settings)))
  try {
    return await bridge(await openControl(context.paths().socket, 'mcp', { terms: callerIn(options) }), signals)
  } finally {
    await node.close()
  }
}

async function bridge(stream: Duplex, { first }: StopSignals): Promise<number> {
  const { stdin, stdout } = process
  let isAsked = false
  stdin.once('end', () => (isAsked = true))
  // A client that is gone reads nothing any more: that is its way to end.
  stdout.on('error', () => {
    isAsked = true
    stream.destroy()
  })
  const ended = new Promise<null>((resolve) => stream.once('close', () => resolve(null)))
  stream.on('error', () => stream.destroy())
  stdin.pipe(stream)
  stream.pipe(stdout, { end: false })
  const code = await Promise.race([ended, first])
  stdin.unpipe(stream)
  stdin.pause()
  stream.destroy()
  if (code !== null) return code
  if (!isAsked) throw new NodeError('NODE_NOT_RUNNING', 'the node ended')
  return EXIT.ok
}

function notRunning(error: unknown): never {
  if (error instanceof NodeError && error.code === 'USAGE')
    throw new NodeError(
      'USAGE',
      `the running node does not take rights of a client; it may be of an earlier build: ${error.message}`,
      {
        next: ['a2a-node stop', 'a2a-node start --detach'],
        cause: error
      }
    )
  if (!(error instanceof NodeError) || error.code !== 'NODE_NOT_RUNNING') throw error
  const next = ['a2a-node start --detach', 'a2a-node mcp serve --embed']
  throw new NodeError('NODE_NOT_RUNNING', error.message, { next, cause: error })
}
