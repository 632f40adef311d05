import test, { type Assert } from 'brittle'
import { type Attack, ATTACKS } from '../support/hostile/attacks.js'
import { survives } from '../support/hostile/survives.js'

const TITLES: Readonly<Record<string, Attack>> = {
  'a member that writes bad blocks to cores that are not in the log stops nobody, also at the next start, and can be put out':
    ATTACKS.strangerBlocks,
  'a writer that writes bad blocks to the log stops nobody, also at the next start, and can be put out':
    ATTACKS.writerBlocks,
  'a member that hints at a hundred thousand cores is cut, stops nobody, and can be put out': ATTACKS.hints,
  'a member that fills the log stops nobody, and can be put out': ATTACKS.log,
  'a member that creates documents with long access lists stops nobody, and can be put out': ATTACKS.view
}

for (const [title, attack] of Object.entries(TITLES))
  test(title, { timeout: 600_000 }, (t: Assert) => survives(t, attack))
