import test, { type Assert } from 'brittle'
import { type Attack, ATTACKS } from '../support/hostile/attacks.js'
import { survives } from '../support/hostile/survives.js'

const TITLES: Readonly<Record<string, Attack>> = {
  'a member that asks for large answers and reads none of them stops nobody, and can be put out': ATTACKS.unread,
  'a member that asks for large answers all the time stops nobody, and can be put out': ATTACKS.calls,
  'a member that asks for what a pattern takes minutes to look at stops nobody, and can be put out': ATTACKS.patterns
}

for (const [title, attack] of Object.entries(TITLES))
  test(title, { timeout: 600_000 }, (t: Assert) => survives(t, attack))
