import fs from 'node:fs/promises'
import path from 'node:path'

/** An agent that does what the first word of a message says, and one that only reads. */
const FILES: Readonly<Record<string, string>> = {
  'acts.md': `---
name: acts
description: Does as it is asked.
a2a:
  version: 1.0.0
  capabilities:
    - { id: acts.do, name: Do, description: Does it, input: { type: object }, default: true, tags: [general] }
  runtime: { type: module, path: ./acts.mjs }
  limits: { concurrency: 16 }
---
`,
  'acts.mjs': `import { existsSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
const PARTS = {
  text: { text: 'words' },
  data: { data: { degrees: 21 } },
  file: { raw: 'aGVsbG8=', filename: 'hello.txt', mediaType: 'text/plain' },
  url: { url: 'https://example.com/report.pdf', filename: 'report.pdf', mediaType: 'application/pdf' }
}
const piece = (text, append, lastChunk) => ({ a2a: { artifact: { artifactId: 'out', parts: [{ text }] }, append, lastChunk } })
async function opened(gate, signal) {
  while (!existsSync(gate)) await wait(20, undefined, { signal })
}
const DO = {
  say: (text) => ({ a2a: { message: 'I say ' + text } }),
  fail: () => ({ a2a: { state: 'failed', message: 'it went wrong' } }),
  ask: () => ({ a2a: { state: 'input-required', message: 'Which one?' } }),
  more: () => ({ a2a: { state: 'input-required', message: 'And then?' } }),
  auth: () => ({ a2a: { state: 'auth-required', message: 'Sign in first.' } }),
  artifact: (kind) => ({ a2a: { artifacts: [{ artifactId: 'it', parts: [PARTS[kind]] }] } }),
  hold: (_, { signal }) => opened('/nowhere', signal),
  async wait(gate, { progress, signal }) {
    progress('I wait')
    await opened(gate, signal)
    return 'waited'
  },
  async stream(gate, { progress, signal }) {
    progress('I begin')
    if (gate.includes('gate-')) await opened(gate, signal)
    progress(piece('words', false, true))
    return null
  },
  async chunks(_, { progress }) {
    for (const [at, text] of ['one ', 'two ', 'three'].entries()) progress(piece(text, at > 0, at === 2))
    return null
  }
}
export default {
  async run({ input }, context) {
    const [word = '', more = ''] = String(input.text ?? '').split(' ')
    return await (DO[word]?.(more, context) ?? { text: 'you said ' + input.text })
  }
}
`,
  'read.md': `---
name: read
description: Reads.
a2a:
  capabilities:
    - { id: read.it, name: Read, description: Reads it, input: { type: object }, idempotent: true, sideEffect: none }
  runtime: { type: module, path: ./read.mjs }
---
`,
  'read.mjs': `export default { run: async ({ input }) => ({ text: 'read ' + input.text }) }
`
}

/** Writes the agents that the cases ask. */
export async function writeAgents(dir: string): Promise<void> {
  await fs.mkdir(dir, { recursive: true })
  for (const [name, text] of Object.entries(FILES)) await fs.writeFile(path.join(dir, name), text)
}
