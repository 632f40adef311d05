import type { CallerTerms } from '../../adapters/control/caller-terms.js'
import { callerTerms } from '../clients/caller.js'
import { type Options, textOption } from '../options.js'

/** Options with a value in an entry that `connect` writes. */
const VALUES: ReadonlySet<string> = new Set(['--as', '--tier', '--sandbox', '--agents', '--tools', '--home'])

/**
 * The options of `mcp serve` in words as `connect` writes them; null for any other words, which the parser of the
 * command line takes. A client waits for this process, and loading the parser takes as long as all else.
 */
export function quickOptions(words: readonly string[]): Options | null {
  const options: Record<string, string | boolean> = {}
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ''
    const key = word === '--no-start' ? 'start' : word.slice(2)
    if (Object.hasOwn(options, key)) return null
    if (word === '--no-start') options[key] = false
    else {
      const value = words[++at] ?? ''
      if (!VALUES.has(word) || value.trim() === '' || value.startsWith('-')) return null
      options[key] = value
    }
  }
  return options
}

/** The rights of a client; null for the operator's: entries of earlier builds name none. @throws NodeError USAGE */
export function callerIn(options: Options): CallerTerms | null {
  const isNamed = ['as', 'tier', 'sandbox', 'agents', 'tools'].some((one) => textOption(options, one) !== undefined)
  return isNamed ? callerTerms(options, 'mcp') : null
}
