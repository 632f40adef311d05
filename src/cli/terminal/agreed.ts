import { NodeError } from '../../kit/errors.js'
import { isSet, type Options } from '../options.js'
import { canAsk, confirm } from './confirm.js'
import type { Output } from './output.js'

/** A change that needs a yes. */
interface AskedChange {
  /** For a person at a terminal. */
  readonly question: string
  /** Options of its command that list and make the change. Default: `--dry-run`, `--yes`. */
  readonly flags?: readonly string[]
}

/**
 * Does a person, or `--yes`, agree with a change?
 * @throws NodeError USAGE without a terminal, with this command line to list the change and to make it
 */
export async function agreed(output: Output, options: Options, change: AskedChange): Promise<boolean> {
  const { question, flags = ['--dry-run', '--yes'] } = change
  if (isSet(options, 'yes')) return true
  if (!output.json && canAsk(output)) return await confirm(question)
  throw new NodeError('USAGE', 'this needs a confirmation, and there is no terminal: nothing was changed', {
    next: output.typed === null ? [] : flags.map((flag) => `${output.typed} ${flag}`)
  })
}
