import fs from 'node:fs'
import path from 'node:path'

const AGENT = `---
name: witness
description: Writes down what it does.
a2a:
  version: 0.1.0
  capabilities:
    - { id: witness.once, idempotent: false, sideEffect: write, default: true, input: { type: object, required: [n] } }
    - { id: witness.again, idempotent: true, sideEffect: write, input: { type: object, required: [n] } }
  runtime: { type: module, path: ./witness.mjs, env: { WITNESS: FILE } }
  limits: { timeout: 30s, concurrency: 16 }
---
`
const MODULE = `import fs from 'node:fs'
export default {
  async run({ input, capability }) {
    fs.appendFileSync(process.env.WITNESS, capability + ' ' + input.n + '\\n')
    return { n: input.n }
  }
}
`

/** An agent whose every effect is a line of a file; `home` is of its node. */
export function placeWitness(home, file) {
  const dir = path.join(home, 'agents')
  fs.mkdirSync(dir, { recursive: true, mode: 0o700 })
  fs.writeFileSync(path.join(dir, 'witness.md'), AGENT.replace('FILE', JSON.stringify(file)))
  fs.writeFileSync(path.join(dir, 'witness.mjs'), MODULE)
  fs.writeFileSync(file, '')
}

/** How often each piece of work was done, by `capability number`. */
export function effectsOf(file) {
  const effects = new Map()
  for (const line of fs.readFileSync(file, 'utf8').split('\n')) if (line !== '') effects.set(line, (effects.get(line) ?? 0) + 1)
  return effects
}
