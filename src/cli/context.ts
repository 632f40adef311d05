import { connectControl } from '../adapters/control/client.js'
import { type HomePaths, resolveHome } from '../config/paths.js'
import type { CallOptions, NodeApi } from '../ports/node-api.js'
import type { Options } from './options.js'
import type { Output } from './terminal/output.js'

/** Context of every command. */
export interface CommandContext {
  readonly output: Output
  /** `--home` as it was typed. */
  readonly home: string | null
  readonly env: Readonly<Record<string, string | undefined>>
  /** The directories of the node meant. @throws NodeError PATH_TOO_LONG */
  paths(): HomePaths
  /** The running node of that home; connected on first use. */
  api(): NodeApi
}

/** A command: does its work and gives the exit code. */
export type Action = (context: CommandContext, args: readonly string[], options: Options) => Promise<number>

interface ContextParts extends Pick<CommandContext, 'output' | 'home' | 'env'> {
  /** `--timeout`. */
  readonly timeoutMs?: number | undefined
}

/** Messages carry the time in their parameters, as a limit of their work. */
const OWN_TIME = /^message\./

/** The API, where the node may wait for each call as long as given. */
function timedApi(api: NodeApi, timeoutMs: number): NodeApi {
  const timed = (name: string, options: CallOptions | undefined): CallOptions =>
    OWN_TIME.test(name) ? { ...options } : { timeoutMs, ...options }
  return {
    call: async (name, params, options) => await api.call(name, params, timed(name, options)),
    watch: (name, params, options) => api.watch(name, params, timed(name, options))
  }
}

/** Makes the context of one command line. */
export function commandContext({ timeoutMs, ...parts }: ContextParts): CommandContext {
  const paths = (): HomePaths => resolveHome({ home: parts.home, env: parts.env })
  let api: NodeApi | null = null
  return {
    ...parts,
    paths,
    api() {
      api ??=
        timeoutMs === undefined ? connectControl(paths().socket) : timedApi(connectControl(paths().socket), timeoutMs)
      return api
    }
  }
}
