import { connectControl } from '../adapters/control/client.js'
import { type HomePaths, resolveHome } from '../config/paths.js'
import type { NodeApi } from '../ports/node-api.js'
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

/** Makes the context of one command line. */
export function commandContext(parts: Pick<CommandContext, 'output' | 'home' | 'env'>): CommandContext {
  const paths = (): HomePaths => resolveHome({ home: parts.home, env: parts.env })
  let api: NodeApi | null = null
  return {
    ...parts,
    paths,
    api() {
      api ??= connectControl(paths().socket)
      return api
    }
  }
}
