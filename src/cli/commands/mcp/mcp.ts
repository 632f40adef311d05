import type { CallerTerms } from '../../../adapters/control/caller-terms.js'
import { callerTerms } from '../../clients/caller.js'
import type { Action, CommandContext } from '../../context.js'
import { serveClient } from '../../mcp/serve.js'
import { durationOption, isForgotten, isSet, type Options, textOption } from '../../options.js'

/**
 * `mcp serve`: standard input and output become an MCP connection to the node of this home, also over its restarts.
 * Ends when its client ends its input (exit 0).
 */
export const serveMcp: Action = async (context, _args, options) => {
  const limitMs = durationOption(options, 'timeout')
  return await serveClient(context, {
    terms: callerIn(options),
    ...(limitMs === undefined ? {} : { limitMs }),
    ...(isForgotten(options, 'start') ? {} : { start: () => startForClients(context, options) })
  })
}

/** The rights of the client; null for the operator's: entries of earlier builds name none. @throws NodeError USAGE */
function callerIn(options: Options): CallerTerms | null {
  const isNamed = ['as', 'tier', 'sandbox', 'agents'].some((one) => textOption(options, one) !== undefined)
  return isNamed ? callerTerms(options, 'mcp') : null
}

/** Starts a node that ends after its last client. @throws NodeError FORBIDDEN when the config does not want it */
async function startForClients(context: CommandContext, options: Options): Promise<void> {
  const [{ startFlags }, { startDetached }] = await Promise.all([
    import('../../start-settings.js'),
    import('../../detach.js')
  ])
  // Its own `--agents` are the ids that the client may use; those of `start` are directories.
  const flags = await startFlags({ ...options, agents: undefined, timeout: undefined })
  await startDetached(context, flags, [`--until-unused=${isSet(options, 'embed') ? 'always' : 'config'}`])
}
