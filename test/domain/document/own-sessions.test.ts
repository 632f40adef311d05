import test from 'brittle'
import { publish, replicaOf, stateOf, tell, writer } from '../../support/documents.js'
import { failsWith } from '../../support/fails.js'

test('a node edits under one clientID, also when its replica is made again of its streams; programs get fresh ones', (t) => {
  const ann = writer('ann')
  const sessions = new Set<number>([ann.replica.doc.clientID])
  const again = { key: ann.key, blocks: ann.blocks, replica: ann.replica }
  for (let time = 0; time < 100; time++) {
    again.replica = replicaOf(ann.key)
    tell(again.replica, [again])
    t.is(again.replica.sessions.clientId(), ann.replica.doc.clientID)
    again.replica.doc.clientID = again.replica.sessions.clientId()
    again.replica.doc.getText('text').insert(time, `${time % 10}`)
    if (time % 50 === 49) sessions.add(again.replica.sessions.open())
    publish(again)
  }
  t.is(sessions.size, 3)
  t.alike(
    [...sessions].map((clientId) => again.replica.sessions.isOfPrograms(clientId)),
    [false, true, true]
  )
  const replica = replicaOf(null)
  t.alike(tell(replica, [again]), [])
  t.alike(stateOf(replica), stateOf(again.replica))
  t.is(replica.doc.getText('text').length, 100)
})

test('while an own update waits for its dependencies, the node edits under another clientID', (t) => {
  const [ann, bob] = [writer('ann'), writer('bob')]
  bob.replica.doc.getText('text').insert(0, 'of bob')
  publish(bob)
  tell(ann.replica, [bob])
  ann.replica.doc.getText('text').insert(6, ', of ann')
  publish(ann)
  const again = { key: ann.key, blocks: ann.blocks, replica: replicaOf(ann.key) }
  tell(again.replica, [again])
  const meanwhile = again.replica.sessions.clientId()
  t.not(meanwhile, ann.replica.doc.clientID)
  t.is(again.replica.sessions.clientId(), meanwhile)
  t.absent(again.replica.sessions.isOfPrograms(meanwhile))
  again.replica.doc.clientID = meanwhile
  again.replica.doc.getText('text').insert(0, 'again. ')
  publish(again)
  tell(again.replica, [bob])
  t.is(again.replica.sessions.clientId(), ann.replica.doc.clientID)
  const replica = replicaOf(null)
  t.alike(tell(replica, [bob, again]), [])
  t.alike(stateOf(replica), stateOf(again.replica))
  t.is(replica.doc.getText('text').length, 'of bob, of annagain. '.length)
})

test('a node without a stream of its own has no session', async (t) => {
  const { sessions } = replicaOf(null)
  await failsWith(t, 'FORBIDDEN', () => sessions.open())
  await failsWith(t, 'FORBIDDEN', () => sessions.clientId())
  t.absent(sessions.isOfPrograms(writer('ann').replica.sessions.open()))
})
