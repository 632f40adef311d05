import { NodeError } from '../../../kit/errors.js'
import { isSet, type Options } from '../../options.js'
import { canAsk, confirm } from '../../terminal/confirm.js'
import type { Output } from '../../terminal/output.js'

/** A change that needs a yes. */
interface AskedChange {
  /** For a person at a terminal. */
  readonly question: string
  /** The command, without options. */
  readonly command: string
}

/**
 * Does a person, or `--yes`, agree with a change?
 * @throws NodeError USAGE without a terminal, with the commands that list the change and that make it
 */
export async function agreed(output: Output, options: Options, { question, command }: AskedChange): Promise<boolean> {
  if (isSet(options, 'yes')) return true
  if (!output.json && canAsk(output)) return await confirm(question)
  throw new NodeError('USAGE', 'this needs a confirmation, and there is no terminal: nothing was changed', {
    next: [`${command} --dry-run`, `${command} --yes`]
  })
}
