import type { CommandContext } from '../context.js'
import { startDetached } from '../detach.js'
import { isSet, type Options } from '../options.js'
import { startFlags } from '../start-settings.js'

/**
 * Starts a node that ends after its last client; `options` are those of `mcp serve`.
 * @throws NodeError FORBIDDEN when the config does not want it
 */
export async function startForClients(context: CommandContext, options: Options): Promise<void> {
  // Its own `--agents` are the ids that the client may use; those of `start` are directories.
  const flags = await startFlags({ ...options, agents: undefined, timeout: undefined })
  await startDetached(context, flags, [`--until-unused=${isSet(options, 'embed') ? 'always' : 'config'}`])
}
