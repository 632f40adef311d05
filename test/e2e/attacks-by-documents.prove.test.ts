import test, { type Assert } from 'brittle'
import { type Attack, ATTACKS } from '../support/hostile/attacks.js'
import { survives } from '../support/hostile/survives.js'

const TITLES: Readonly<Record<string, Attack>> = {
  'a member that writes large streams of documents stops nobody, can be put out, and its documents are kept no longer':
    ATTACKS.streams,
  'a member that announces documents with names that sort first takes the place of no other, and can be put out':
    ATTACKS.names
}

for (const [title, attack] of Object.entries(TITLES))
  test(title, { timeout: 600_000 }, (t: Assert) => survives(t, attack))
