import { spawnSync } from 'node:child_process'
import test from 'brittle'

test('one remote call runs through no more files of the callee, and moves between them no more often, than the caps allow', (t) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/call-path.mjs', '--list'], {
    encoding: 'utf8'
  })
  t.is(status, 0, stdout.slice(0, 1000) + stderr)
  const files: readonly string[] = stdout.match(/(?<=(?:->|<-) )src\/\S+/g) ?? []
  t.is(files[0], 'src/adapters/mesh/links/frame-guard.ts', 'the request arrives at its link')
  for (const file of [
    'src/node/requests/callee/executor.ts',
    'src/node/agents/in-process-agents.ts',
    'src/node/requests/callee/replies.ts'
  ])
    t.ok(files.includes(file), file)
  t.is(Number(/^ *(\d+) {2}files/m.exec(stdout)?.[1]), new Set(files).size)
  t.is(Number(/^ *(\d+) {2}moves at/m.exec(stdout)?.[1]), (stdout.match(/-> src/g) ?? []).length - 1)
})
