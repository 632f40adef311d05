import test from 'brittle'
import { eventually } from '../../../support/agents/eventually.js'
import { keyText } from '../../../support/membership.js'
import { threeNodes } from '../lab.js'

test('a core of a document is signed once the owner has signed the log so far', { timeout: 90_000 }, async (t) => {
  const { lab, owner, admin } = await threeNodes(t)
  const { meshId: mesh, log } = admin.mesh
  const [stream, snapshot] = [keyText('stream'), keyText('snapshot')]
  await owner.mesh.log.submit({ kind: 'document', mesh, name: 'notes', access: null, at: 1 })
  await log.submit({ kind: 'document-stream', mesh, name: 'notes', coreKey: stream })
  await eventually(() => log.isCoreSigned(stream))
  t.absent(await log.isCoreSigned(snapshot), 'nobody wrote it yet')
  await owner.close()
  const made = { serial: 0, coreKey: snapshot, blocks: 1, hash: keyText('hash'), lengths: { [stream]: 1024 } }
  await log.submit({ kind: 'document-snapshot', mesh, name: 'notes', ...made })
  t.is(log.view().documents.get('notes')?.snapshot?.coreKey, snapshot, 'it is in force here')
  t.absent(await log.isCoreSigned(snapshot), 'but the owner did not sign it')
  t.ok(await log.isCoreSigned(stream))
  t.absent(await log.isCoreSigned(keyText('of nobody')))
  // The owner acknowledges what others wrote every ten seconds or so.
  await (await lab.reopen(owner)).start()
  await eventually(() => log.isCoreSigned(snapshot))
})
