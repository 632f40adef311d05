import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { agentText } from '../../support/agents/agent-text.js'
import { tempDir } from '../../support/tmp.js'
import { spawned } from '../command-line.js'

test('agents check reports each module of a directory that cannot be loaded, with the cause, also a load without an end', async (t) => {
  const dir = await tempDir(t)
  const modules: Readonly<Record<string, [string, RegExp | null]>> = {
    cut: ['export default {', /cut\.mjs:1: Unexpected end of input/],
    named: ['export const run = () => 1', /no object with a run\(task, ctx\) function/],
    thrown: ["throw new Error('at the top')", /thrown\.mjs:1: at the top/],
    endless: ['for (;;);', /not loaded within 8 s/],
    good: ['export default { run: () => 1 }', null]
  }
  for (const [name, [text]] of Object.entries(modules)) {
    await fs.writeFile(path.join(dir, `${name}.mjs`), text)
    await fs.writeFile(path.join(dir, `${name}.md`), agentText(name, [], `{ type: module, path: ./${name}.mjs }`))
  }
  // A process of its own: it must not end before its reports.
  const ran = await spawned(['agents', 'check', dir, '--json'])
  t.is(ran.code, 78, ran.stderr)
  const { files } = JSON.parse(ran.stdout) as {
    files: { file: string; ok: boolean; faults: { line: number; reason: string }[] }[]
  }
  t.is(files.length, Object.keys(modules).length)
  for (const { file, ok, faults } of files) {
    const reason = modules[path.basename(file, '.md')]?.[1] ?? null
    t.is(ok, reason === null, file)
    t.is(faults.length, reason === null ? 0 : 1)
    for (const fault of faults) t.ok(reason?.test(fault.reason) === true && fault.line > 1, fault.reason)
  }
})
