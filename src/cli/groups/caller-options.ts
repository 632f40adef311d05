import type { OptionSpec } from '../terminal/table.js'

/** Options of commands that give a program rights of its own. */
export const CALLER_OPTIONS: readonly OptionSpec[] = [
  { flags: '--tier <tier>', about: 'its tier at most, L0..L3 (default: L1)' },
  { flags: '--sandbox <id>', about: 'confine it to a sandbox' },
  { flags: '--agents <list>', about: 'ids of the agents that it may use, with * for any text (default: all)' },
  { flags: '--tools <list>', about: 'names of the tools in its list, e.g. text.*,git@beta.* (default: all)' }
]
