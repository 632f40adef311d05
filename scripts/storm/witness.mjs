import fs from 'node:fs'
import path from 'node:path'

/** Runs of the agent at once on each node. */
export const CONCURRENCY = 16
/** The capability that may be run at most once for a request, and the one that may be run again. */
export const [ONCE, AGAIN] = ['witness.once', 'witness.again']

const AGENT = `---
name: witness
description: Writes down what it does.
a2a:
  version: 0.1.0
  capabilities:
    - { id: ${ONCE}, idempotent: false, sideEffect: write, default: true, input: { type: object, required: [n] } }
    - { id: ${AGAIN}, idempotent: true, sideEffect: write, input: { type: object, required: [n] } }
  runtime: { type: module, path: ./witness.mjs, env: { WITNESS: FILE } }
  limits: { timeout: 30s, concurrency: ${CONCURRENCY} }
---
`
// A run lasts up to 20 ms, so that some are killed between their two lines.
const MODULE = `import fs from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
const note = (what) => fs.appendFileSync(process.env.WITNESS, what + '\\n')
export default {
  async run({ input, capability }) {
    note('begin ' + capability + ' ' + input.n)
    await delay(input.n.length * 7919 % 20)
    note('end ' + capability + ' ' + input.n)
    return { n: input.n }
  }
}
`

/** An agent that writes the beginning and the end of each run into a file, as lines; `home` is of its node. */
export function placeWitness(home, file) {
  const dir = path.join(home, 'agents')
  fs.mkdirSync(dir, { recursive: true, mode: 0o700 })
  fs.writeFileSync(path.join(dir, 'witness.md'), AGENT.replace('FILE', JSON.stringify(file)))
  fs.writeFileSync(path.join(dir, 'witness.mjs'), MODULE)
}

/** What witnesses of all nodes wrote into one file. */
export class Effects {
  /** Absolute. */
  file
  #begun = new Map()
  #ended = new Map()
  #bytes = 0
  #rest = ''

  constructor(file) {
    this.file = file
    fs.writeFileSync(file, '')
  }

  /** Reads what was written since the last time. */
  read() {
    const { size } = fs.statSync(this.file)
    const bytes = Buffer.alloc(size - this.#bytes)
    const handle = fs.openSync(this.file)
    fs.readSync(handle, bytes, 0, bytes.length, this.#bytes)
    fs.closeSync(handle)
    this.#bytes = size
    const lines = (this.#rest + bytes.toString()).split('\n')
    this.#rest = lines.pop()
    for (const line of lines) {
      const counts = line.startsWith('begin ') ? this.#begun : this.#ended
      const run = line.slice(line.indexOf(' ') + 1)
      counts.set(run, (counts.get(run) ?? 0) + 1)
    }
    return this
  }

  /** How many runs have ended. */
  get size() {
    return this.#ended.size
  }

  /** How often a run (`capability n`) began. */
  begun(run) {
    return this.#begun.get(run) ?? 0
  }

  /** How often it ended. */
  ended(run) {
    return this.#ended.get(run) ?? 0
  }

  /** Runs (`capability n`) that may run once and began several times. */
  repeated() {
    return [...this.#begun].filter(([run, times]) => times > 1 && run.startsWith(ONCE)).map(([run]) => run)
  }
}
