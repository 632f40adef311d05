import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { openAudit } from '../../../../src/adapters/storage/audit/audit-log.js'
import { verifyAudit } from '../../../../src/adapters/storage/audit/audit-verify.js'
import { homeParts } from '../../../../src/adapters/storage/home/home-files.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { tempDir } from '../../../support/tmp.js'

test('an audit log that is written while it is taken into a backup holds in it', async (t) => {
  const [home, copy] = [await tempDir(t), await tempDir(t)]
  const [audit, auditSeen] = [path.join(home, 'audit'), path.join(home, 'audit.seen')]
  const log = await openAudit({
    dir: audit,
    seen: auditSeen,
    clock: new ManualClock(),
    onError: () => t.fail('the disk works')
  })
  t.teardown(() => log.close())
  const files = { home, agents: path.join(home, 'agents'), configFile: path.join(home, 'config.yaml') }
  for (let i = 0; i < 9; i++) log.append({ kind: 'membership', code: `c${i}` })
  await log.flush()
  await fs.mkdir(path.join(copy, 'home', 'audit'), { recursive: true })
  for await (const { name, bytes } of homeParts({
    ...files,
    policyFile: path.join(home, 'policy.yaml'),
    audit,
    auditSeen
  })) {
    await fs.writeFile(path.join(copy, name), bytes)
    log.append({ kind: 'membership', code: 'later' })
    await log.flush()
  }
  const check = await verifyAudit(path.join(copy, 'home', 'audit'), { seen: path.join(copy, 'home', 'audit.seen') })
  t.alike([check.ok, check.broken], [true, []])
  t.ok(check.entries >= 9)
})
